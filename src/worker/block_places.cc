#include "worker/block_places.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace sluice::worker {
namespace {

std::string_view tier_of(std::uint8_t places) { return (places & 1U) != 0 ? "pool" : "dram"; }

}  // namespace

std::size_t BlockPlaces::Hash::operator()(const kv::BlockKey& key) const {
    // Any eight bytes of a SHA-256 are as good as a hash of it.
    std::size_t hash = 0;
    std::memcpy(&hash, key.data(), sizeof(hash));
    return hash;
}

// The log is told under the lock, so that its order is that of what happened.
void BlockPlaces::add(const kv::NamedBlock& block, Place place) {
    const std::lock_guard lock(mutex_);
    Known& known = known_[block.key];
    if (known.places == 0) {
        known.block = block;
        known.number = count_++;
        log_.stored({.block = block, .tier = tier_of(static_cast<std::uint8_t>(place))});
    }
    known.places |= static_cast<std::uint8_t>(place);
}

void BlockPlaces::remove(const kv::BlockKey& key, Place place) {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(key);
    if (known == known_.end()) return;
    known->second.places &= static_cast<std::uint8_t>(~static_cast<std::uint8_t>(place));
    if (known->second.places != 0) return;
    known_.erase(known);
    log_.removed(key);
}

kvnode::KvEventFeed::Snapshot BlockPlaces::snapshot() const {
    const std::lock_guard lock(mutex_);
    std::vector<const Known*> all;
    all.reserve(known_.size());
    for (const auto& [key, known] : known_) all.push_back(&known);
    std::ranges::sort(all, {}, &Known::number);
    kvnode::KvEventFeed::Snapshot snapshot{.next = log_.next(), .blocks = {}};
    snapshot.blocks.reserve(all.size());
    for (const Known* known : all)
        snapshot.blocks.push_back({.block = known->block, .tier = tier_of(known->places)});
    return snapshot;
}

}  // namespace sluice::worker
