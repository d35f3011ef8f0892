#pragma once

// Which entry goes first when room is needed: the one that is worth the least for its bytes.
//
// An entry is worth what it costs to compute it again, for each byte that it takes, times its uses, on
// top of the worth of what went last when it was used (greedy dual size frequency). So what was used
// often outlives what was used once, but not for ever: what went last is worth ever more. Of equals
// the least recently used goes first.
//
// Of a chain of blocks only the last can go without making those behind it useless, so an entry that
// others follow is held, as is one that is pinned. What is found held when it would go is set aside
// until its last hold ends. So a block outlives all that follow it, in whatever order the blocks of a
// request were asked for.
//
// sim/ replays recorded traffic on this order and on those it was chosen from: docs/cache-policies.md.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::kv {

class WorthOrder {
    /// What goes first is worth less.
    struct Worth {
        double value = 0.0;
        std::uint64_t last_use = 0;
        auto operator<=>(const Worth&) const = default;
    };

public:
    /// An entry's place. The entry owns it and takes it out before it ends.
    class Node {
    public:
        [[nodiscard]] bool held() const { return holds_ > 0; }

    private:
        friend class WorthOrder;
        static constexpr std::uint32_t kAside = ~0U;

        Worth worth_;
        float cost_ = 1.0F;
        std::uint32_t uses_ = 0;
        std::uint32_t holds_ = 0;
        std::uint32_t place_ = kAside;  ///< In the heap.
    };

private:
    /// What the node was worth when it got here: uses make it worth more, but move it when it comes to
    /// the front, not before.
    struct Slot {
        Worth worth;
        Node* node = nullptr;
    };

public:
    /// What of an entry's place isn't in the entry, at most, while there are many.
    static constexpr std::size_t kBytesEach = 3 * sizeof(Slot);

    WorthOrder() = default;
    WorthOrder(const WorthOrder&) = delete;
    WorthOrder& operator=(const WorthOrder&) = delete;

    /// A new entry, used for the first time. `cost`: of computing it again, for each byte, in any unit;
    /// above 0.
    void add(Node& node, float cost = 1.0F);
    void use(Node& node) { rate(node); }
    /// An order that is empty goes on from where `other` is.
    void begin_as(const WorthOrder& other) {
        age_ = other.age_;
        uses_ = other.uses_;
    }
    /// As `add`, but as often used, as long ago, and as often held as `other`, a node of the order that
    /// this one began as.
    void add_as(Node& node, const Node& other);
    /// Of a node that isn't here: it is as often held.
    static void hold_as(Node& node, const Node& other) { node.holds_ = other.holds_; }
    /// It is no longer here, whether it is set aside or not.
    void remove(Node& node);
    void hold(Node& node) { ++node.holds_; }
    /// Gives one hold back.
    void unhold(Node& node);
    /// Takes out the one that goes next; null if all are held.
    [[nodiscard]] Node* take_next();

private:
    /// More uses than that are no better: nothing stays just because it was in fashion.
    static constexpr std::uint32_t kUsesMost = 8;
    /// A wide heap is a flat one, whose slots lie side by side.
    static constexpr std::size_t kChildren = 4;

    void rate(Node& node);
    void push(Node& node);
    void place(const Slot& slot, std::size_t at);
    void rise(const Slot& slot, std::size_t at);
    void sink(const Slot& slot, std::size_t at);
    void take_out(Node& node);

    std::vector<Slot> heap_;  ///< The next to go first.
    double age_ = 0.0;        ///< The worth of what went last.
    std::uint64_t uses_ = 0;
};

}  // namespace sluice::kv
