#include "sim/cache_node.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <unordered_map>

#include "kv/worth_order.h"
#include "sim/lru_order.h"
#include "sim/s3_fifo_order.h"

namespace sluice::sim {
namespace {

constexpr auto kNames = std::to_array<std::string_view>({"worth", "attention", "lru", "s3fifo"});

template <class Order>
class OrderedNode : public CacheNode {
public:
    explicit OrderedNode(std::uint32_t blocks) : room_(blocks) {}

    [[nodiscard]] bool contains(BlockKey key) const override { return entries_.contains(key); }
    void use(BlockKey key) override { order_.use(entries_.at(key)); }
    [[nodiscard]] std::uint32_t blocks() const override {
        return static_cast<std::uint32_t>(entries_.size());
    }
    [[nodiscard]] std::uint64_t evictions() const override { return evictions_; }

    void store(BlockKey key, BlockKey parent, float cost) override {
        if (entries_.contains(key)) return;
        // Held while room is made, so that no block drives out the one before it.
        Entry* const before = find(parent);
        if (before != nullptr) order_.hold(*before);
        if (make_room()) {
            Entry& entry = entries_[key];
            entry.key = key;
            if constexpr (std::is_same_v<Order, kv::WorthOrder>) {
                order_.add(entry, cost);
            } else {
                order_.add(entry, key);
            }
            entry.parent = before;
            if (before != nullptr) order_.hold(*before);
            tell(key, true);
        }
        if (before != nullptr) order_.unhold(*before);
    }

private:
    struct Entry : Order::Node {
        BlockKey key = 0;
        Entry* parent = nullptr;
    };

    [[nodiscard]] Entry* find(BlockKey key) {
        const auto at = entries_.find(key);
        return at == entries_.end() ? nullptr : &at->second;
    }

    [[nodiscard]] bool make_room() {
        if (entries_.size() < room_) return true;
        auto* const next = static_cast<Entry*>(order_.take_next());
        if (next == nullptr) return false;
        Entry* const parent = next->parent;
        tell(next->key, false);
        entries_.erase(next->key);
        if (parent != nullptr) order_.unhold(*parent);
        ++evictions_;
        return true;
    }

    std::uint32_t room_;
    Order order_;
    std::unordered_map<BlockKey, Entry> entries_;
    std::uint64_t evictions_ = 0;
};

}  // namespace

std::string_view to_string(CachePolicy policy) {
    return kNames.at(static_cast<std::size_t>(policy));
}

std::optional<CachePolicy> parse_cache_policy(std::string_view name) {
    const auto* const found = std::ranges::find(kNames, name);
    if (found == kNames.end()) return std::nullopt;
    return static_cast<CachePolicy>(found - kNames.begin());
}

std::unique_ptr<CacheNode> make_cache_node(CachePolicy policy, std::uint32_t blocks) {
    switch (policy) {
        case CachePolicy::kWorth:
        case CachePolicy::kAttention: return std::make_unique<OrderedNode<kv::WorthOrder>>(blocks);
        case CachePolicy::kLru: return std::make_unique<OrderedNode<LruOrder>>(blocks);
        case CachePolicy::kS3Fifo: return std::make_unique<OrderedNode<S3FifoOrder>>(blocks);
    }
    return nullptr;
}

}  // namespace sluice::sim
