#include "kv/ssd_index.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace sluice::kv {
namespace {

/// Slots that one step of a walk looks at: others wait meanwhile.
constexpr std::size_t kStep = 4096;
/// A life is made longer by at least so much: a hot entry's life is not written with every use.
constexpr std::int64_t kLongerMilliseconds = 60'000;

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
    entry.parent = record.parent;
    const Place place{.segment = &segment, .slot = record.slot};
    segment.bytes += ssd_entry_bytes(record.name.size(), record.value_bytes);

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
    if (entry.parent != kSsdNoKin) followers_.insert(follower_at(place));
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

bool SsdIndex::walk(Cursor& cursor, std::vector<Place>& places) {
    places.clear();
    for (std::size_t looked_at = 0; looked_at < kStep;) {
        const auto found = segments_.lower_bound(cursor.number);
        if (found == segments_.end()) return false;
        Segment& segment = *found->second;
        if (segment.header.number != cursor.number) cursor = {.number = segment.header.number};
        for (; cursor.slot < segment.entries.size() && looked_at < kStep; ++cursor.slot) {
            ++looked_at;
            const Place place{.segment = &segment, .slot = cursor.slot};
            if (place.entry().name != nullptr) places.push_back(place);
        }
        if (cursor.slot < segment.entries.size()) break;
        cursor = {.number = cursor.number + 1};
        ++looked_at;
    }
    return true;
}

std::vector<std::uint64_t> SsdIndex::dead_segments() const {
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, segment] : segments_)
        if (segment->live == 0 && !segment->open) numbers.push_back(number);
    return numbers;
}

std::optional<SsdIndex::Place> SsdIndex::find_kin(std::uint64_t kin) {
    if (kin == kSsdNoKin) return std::nullopt;
    const auto found = by_name_.find(ByKin{kin});
    if (found == by_name_.end()) return std::nullopt;
    return Place{.segment = found->second.segment, .slot = found->second.slot};
}

bool SsdIndex::is_followed_outside(std::uint64_t kin, std::uint64_t number) const {
    const auto is_of = [&](auto at) { return at != followers_.end() && at->parent == kin; };
    const auto first = followers_.lower_bound({.parent = kin});
    if (!is_of(first)) return false;
    return first->number != number ||
           is_of(followers_.lower_bound({.parent = kin, .number = number + 1}));
}

std::optional<SsdIndex::Place> SsdIndex::next_follower(std::uint64_t kin, Cursor& cursor) {
    const auto next =
        followers_.lower_bound({.parent = kin, .number = cursor.number, .slot = cursor.slot});
    if (next == followers_.end() || next->parent != kin) return std::nullopt;
    cursor = {.number = next->number, .slot = next->slot + 1};
    return at(next->number, next->slot);
}

void SsdIndex::use(const Place& place, std::int64_t now_ms, std::int64_t until_ms) {
    // What was used lately, and all before it, is left alone: only the first use of a chain's end in
    // a while walks all of it.
    for (std::optional<Place> each = place; each; each = find_kin(each->entry().parent)) {
        const Entry& entry = each->entry();
        const bool ends_early = entry.expires_ms <= until_ms - kLongerMilliseconds;
        if (entry.expires_ms <= now_ms || (entry.used && !ends_early)) return;
        set_used(*each);
        if (ends_early) set_expiry(*each, until_ms);
    }
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
    if (entry.name == nullptr) return;
    const std::uint64_t bytes = place.bytes();
    place.segment->live -= 1;
    place.segment->live_bytes -= bytes;
    if (entry.used) place.segment->used_bytes -= bytes;
    live_bytes_[static_cast<std::size_t>(place.segment->header.retention)] -= bytes;
    if (entry.parent != kSsdNoKin) followers_.erase(follower_at(place));
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

double SsdIndex::gain(const Segment& segment, std::uint64_t kept_bytes) const {
    // Cost and benefit as in log-structured file systems (Rosenblum and Ousterhout, 1991).
    const double kept = static_cast<double>(kept_bytes) /
                        static_cast<double>(std::max<std::uint64_t>(segment.bytes, 1));
    const std::uint64_t newest = segments_.rbegin()->first;
    return (1 - kept) / (1 + kept) * static_cast<double>(newest - segment.header.number);
}

std::vector<std::uint64_t> SsdIndex::victims(std::size_t most) const {
    std::vector<std::pair<double, std::uint64_t>> best;
    for (const auto& [number, segment] : segments_) {
        if (segment->open) continue;
        if (segment->live == 0) return {number};
        best.emplace_back(-gain(*segment, segment->used_bytes), number);
    }
    most = std::min(most, best.size());
    std::ranges::partial_sort(best, best.begin() + static_cast<std::ptrdiff_t>(most));
    std::vector<std::uint64_t> numbers;
    for (std::size_t i = 0; i < most; ++i) numbers.push_back(best[i].second);
    return numbers;
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
