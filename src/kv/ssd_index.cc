#include "kv/ssd_index.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace sluice::kv {
namespace {

/// So many of the oldest segments, and at least a quarter of all, are considered as victims.
constexpr std::size_t kCandidates = 8;

}  // namespace

SsdIndex::Segment& SsdIndex::add_segment(const SsdSegmentHeader& header,
                                         std::shared_ptr<SsdFile> file) {
    auto segment = std::make_unique<Segment>();
    segment->header = header;
    segment->file = std::move(file);
    const auto [at, is_new] = segments_.emplace(header.number, std::move(segment));
    SLUICE_ASSERT(is_new);
    return *at->second;
}

void SsdIndex::add(Segment& segment, const SsdRecord& record) {
    if (segment.entries.size() <= record.slot) segment.entries.resize(record.slot + 1);
    Entry& entry = segment.entries[record.slot];
    SLUICE_ASSERT(entry.name == nullptr);
    entry.offset = record.offset;
    entry.value_bytes = record.value_bytes;
    entry.sequence = record.sequence;
    entry.expires_ms = record.expires_ms;
    const Place place{.segment = &segment, .slot = record.slot};

    auto known = by_name_.find(record.name);
    if (known != by_name_.end()) {
        const Place other{.segment = known->second.segment, .slot = known->second.slot};
        if (other.entry().sequence > record.sequence) {
            entry.expires_ms = kSsdErased;
            mark_dirty(place);
            segment.deaths_unsynced = true;
            return;
        }
        kill(other);
    }
    known = by_name_.emplace(record.name, Location{.segment = &segment, .slot = record.slot}).first;
    entry.name = &known->first;
    segment.live += 1;
    segment.live_bytes += place.bytes();
    live_bytes_[static_cast<std::size_t>(segment.header.retention)] += place.bytes();
}

std::vector<std::string> SsdIndex::remove_segment(std::uint64_t number) {
    const auto found = segments_.find(number);
    SLUICE_ASSERT(found != segments_.end());
    std::vector<std::string> names;
    Segment& segment = *found->second;
    for (std::uint32_t slot = 0; slot < segment.entries.size(); ++slot) {
        if (segment.entries[slot].name == nullptr) continue;
        names.push_back(*segment.entries[slot].name);
        kill({.segment = &segment, .slot = slot});
    }
    dirty_ -= segment.dirty.size();
    segments_.erase(found);
    return names;
}

std::optional<SsdIndex::Place> SsdIndex::find(std::string_view name) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return std::nullopt;
    return Place{.segment = found->second.segment, .slot = found->second.slot};
}

std::optional<SsdIndex::Place> SsdIndex::at(std::uint64_t number, std::uint32_t slot) {
    Segment* found = segment(number);
    if (found == nullptr || found->entries.size() <= slot) return std::nullopt;
    return Place{.segment = found, .slot = slot};
}

SsdIndex::Segment* SsdIndex::segment(std::uint64_t number) {
    const auto found = segments_.find(number);
    return found == segments_.end() ? nullptr : found->second.get();
}

SsdIndex::Segment* SsdIndex::segment_after(std::uint64_t number) {
    const auto found = segments_.upper_bound(number);
    return found == segments_.end() ? nullptr : found->second.get();
}

void SsdIndex::set_used(const Place& place) {
    if (std::exchange(place.entry().used, true)) return;
    place.segment->used_bytes += place.bytes();
}

void SsdIndex::set_expiry(const Place& place, std::int64_t expires_ms) {
    place.entry().expires_ms = expires_ms;
    mark_dirty(place);
}

void SsdIndex::kill(const Place& place) {
    Entry& entry = place.entry();
    const std::uint64_t bytes = place.bytes();
    place.segment->live -= 1;
    place.segment->live_bytes -= bytes;
    if (entry.used) place.segment->used_bytes -= bytes;
    live_bytes_[static_cast<std::size_t>(place.segment->header.retention)] -= bytes;
    by_name_.erase(by_name_.find(*entry.name));
    entry.name = nullptr;
    set_expiry(place, kSsdErased);
    place.segment->deaths_unsynced = true;
}

void SsdIndex::mark_dirty(const Place& place) {
    if (std::exchange(place.entry().dirty, true)) return;
    place.segment->dirty.push_back(place.slot);
    ++dirty_;
}

SsdIndex::Segment* SsdIndex::victim() {
    const std::size_t considered = std::max(kCandidates, segments_.size() / 4);
    Segment* best = nullptr;
    std::size_t seen = 0;
    for (const auto& [number, segment] : segments_) {
        if (segment->open) continue;
        if (best == nullptr || segment->used_bytes < best->used_bytes) best = segment.get();
        if (best->live == 0 || ++seen == considered) break;
    }
    return best;
}

std::vector<SsdIndex::DirtyLives> SsdIndex::take_dirty() {
    std::vector<DirtyLives> all;
    for (const auto& [number, segment] : segments_) {
        if (segment->dirty.empty()) continue;
        DirtyLives& taken = all.emplace_back(number, segment->header.nonce);
        for (const std::uint32_t slot : std::exchange(segment->dirty, {})) {
            Entry& entry = segment->entries[slot];
            entry.dirty = false;
            --dirty_;
            taken.lives.push_back({.slot = slot, .expires_ms = entry.expires_ms});
        }
    }
    return all;
}

std::vector<std::uint64_t> SsdIndex::take_unsynced_deaths() {
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, segment] : segments_)
        if (std::exchange(segment->deaths_unsynced, false)) numbers.push_back(number);
    return numbers;
}

}  // namespace sluice::kv
