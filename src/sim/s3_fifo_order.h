#pragma once

// S3-FIFO (Yang and others, SOSP 2023): a small queue in which new entries prove themselves, a main
// queue for those that were used meanwhile or came back soon after they went, and the names of those
// that went from the small one. What kv::WorthOrder is compared with. Holds are treated as there.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>

#include "sim/node_list.h"

namespace sluice::sim {

class S3FifoOrder {
public:
    struct Node {
        Node* before = nullptr;
        Node* after = nullptr;
        std::uint64_t id = 0;
        std::uint32_t holds = 0;
        std::uint8_t uses = 0;  ///< Since it was queued.
        bool main = false;
        bool queued = false;  ///< Not set aside.
    };

    void add(Node& node, std::uint64_t id);
    void use(Node& node);
    void hold(Node& node) { ++node.holds; }
    void unhold(Node& node);
    [[nodiscard]] Node* take_next();

private:
    static constexpr std::uint8_t kUsesMost = 3;
    /// The small queue's part of all, one in so many.
    static constexpr std::size_t kSmallPart = 10;

    [[nodiscard]] NodeList<Node>& queue_of(const Node& node) { return node.main ? main_ : small_; }
    void queue(Node& node);
    [[nodiscard]] Node* take_small();
    [[nodiscard]] Node* take_main();
    void remember(std::uint64_t id);

    NodeList<Node> small_;
    NodeList<Node> main_;
    struct Gone {
        std::uint64_t id = 0;
        std::uint64_t number = 0;
    };
    std::deque<Gone> gone_;  ///< In the order in which they went.
    std::unordered_map<std::uint64_t, std::uint64_t> gone_numbers_;  ///< By id: of the last time.
    std::uint64_t gone_count_ = 0;
    std::size_t entries_ = 0;
};

}  // namespace sluice::sim
