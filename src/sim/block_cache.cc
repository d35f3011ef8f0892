#include "sim/block_cache.h"

#include <ranges>
#include <utility>

#include "base/assert.h"

namespace sluice::sim {

std::uint32_t BlockCache::match(std::span<const BlockKey> chain) const {
    std::uint32_t count = 0;
    while (count < chain.size() && keyed_.contains(chain[count])) ++count;
    return count;
}

void BlockCache::hold(std::span<const BlockKey> chain, std::uint32_t count) {
    for (const BlockKey key : chain.first(count)) {
        Entry& entry = keyed_.at(key);
        if (entry.holds++ == 0) kept_.erase(entry.kept);
    }
}

// From leaf to root, so that the head of a chain outlives its tail.
void BlockCache::release(std::span<const BlockKey> chain) {
    for (const BlockKey key : std::views::reverse(chain)) {
        Entry& entry = keyed_.at(key);
        SLUICE_ASSERT(entry.holds > 0);
        if (--entry.holds == 0) entry.kept = kept_.insert(kept_.end(), key);
    }
}

bool BlockCache::allocate(std::uint32_t count) {
    if (count > available()) return false;
    unnamed_ += count;
    while (unnamed_ + keyed_.size() > blocks_) evict_one();
    return true;
}

void BlockCache::give_back(std::uint32_t count) {
    SLUICE_ASSERT(unnamed_ >= count);
    unnamed_ -= count;
}

void BlockCache::seal(BlockKey key, BlockKey parent) {
    give_back(1);
    const auto [at, added] = keyed_.try_emplace(key);
    if (added) events_.push_back({.kind = Event::Kind::kStored, .key = key, .parent = parent});
    if (at->second.holds++ == 0 && !added) kept_.erase(at->second.kept);
}

void BlockCache::evict_one() {
    const BlockKey key = kept_.front();
    kept_.pop_front();
    keyed_.erase(key);
    ++evictions_;
    events_.push_back({.kind = Event::Kind::kRemoved, .key = key});
}

void BlockCache::clear() {
    keyed_.clear();
    kept_.clear();
    unnamed_ = 0;
    events_.clear();
    events_.push_back({.kind = Event::Kind::kCleared});
}

std::vector<BlockCache::Event> BlockCache::take_events() { return std::exchange(events_, {}); }

}  // namespace sluice::sim
