#include "kv/ssd_reclaimer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace sluice::kv {
namespace {

/// Files and what memory each takes; reached only by restarting again and again.
constexpr std::size_t kSegmentsMax = 2048;
/// A bound that a full disk has set grows by this share of a segment with each one opened.
constexpr std::uint64_t kGrowth = 8;
/// Segments that it leaves room for at least: with less none could ever be opened again.
constexpr std::uint64_t kLeast = 3;

std::int64_t milliseconds(std::chrono::system_clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

}  // namespace

bool SsdReclaimer::has_room() const {
    // One segment for who asks, one for what a reclaim may have to carry.
    if (space_.used() + 2 * options_.segment_bytes > bytes_max_) return false;
    const std::lock_guard lock(state_.mutex);
    return state_.index.entries() < options_.entries && state_.index.segments() < kSegmentsMax;
}

Result<void> SsdReclaimer::make_room() {
    while (!has_room()) {
        if (!reclaim_one()) {
            return std::unexpected(
                Error(ErrorCode::kExhausted, "has nothing left to reclaim", directory_.path()));
        }
    }
    return {};
}

void SsdReclaimer::shrink() {
    while (space_.used() > bytes_max_ && reclaim_one()) {
    }
}

void SsdReclaimer::disk_is_full() {
    bytes_max_ = std::min(options_.bytes, std::max(space_.used(), kLeast * options_.segment_bytes));
    log::warn("{}: the disk is full; the tier keeps to {} bytes", directory_.path(),
              bytes_max_.load());
}

void SsdReclaimer::segment_opened() {
    bytes_max_ = std::min(options_.bytes, bytes_max_ + options_.segment_bytes / kGrowth);
}

bool SsdReclaimer::choose(Victim& victim) {
    const std::int64_t now = milliseconds(options_.clock());
    const std::lock_guard lock(state_.mutex);
    SsdIndex::Segment* segment = state_.index.victim();
    if (segment == nullptr) return false;
    victim.header = segment->header;
    victim.file = segment->file;
    std::uint64_t carried = 0;
    for (std::uint32_t slot = 0; slot < segment->entries.size(); ++slot) {
        const SsdIndex::Place place{.segment = segment, .slot = slot};
        const SsdIndex::Entry& entry = place.entry();
        if (entry.name == nullptr || !entry.used || entry.expires_ms <= now) continue;
        if (state_.queue.find(*entry.name) != nullptr) continue;  // Soon replaced.
        carried += place.bytes();
        if (carried > options_.segment_bytes / 2) break;
        victim.hot.push_back({.name = *entry.name,
                              .slot = slot,
                              .offset = entry.offset,
                              .bytes = place.bytes(),
                              .expires_ms = entry.expires_ms});
    }
    return true;
}

bool SsdReclaimer::reclaim_one() {
    Victim victim;
    if (!choose(victim)) return false;
    if (!victim.hot.empty()) carry(victim);
    // What replaced or erased something elsewhere may have been in this segment.
    if (auto synced = lives_.sync(); !synced)
        log::warn("{}: lives: {}", directory_.path(), synced.error().to_string());
    remove(victim.header.number, std::move(victim.file));
    return true;
}

void SsdReclaimer::carry(const Victim& victim) {
    for (const Hot& hot : victim.hot)
        if (!carry(victim, hot)) break;
    // What was on disk for good must be so again before its old place goes.
    if (auto synced = appender_.sync(); !synced)
        log::warn("{}: could not carry: {}", directory_.path(), synced.error().to_string());
}

bool SsdReclaimer::carry(const Victim& victim, const Hot& hot) {
    const auto buffer = buffers_->take(hot.bytes);
    if (!victim.file->read({buffer.get(), hot.bytes}, hot.offset)) return true;
    const auto value = decode_entry({reinterpret_cast<const char*>(buffer.get()), hot.bytes},
                                    victim.header.nonce, hot.name);
    if (!value) {
        const std::lock_guard lock(state_.mutex);
        const auto place = state_.index.at(victim.header.number, hot.slot);
        if (place && place->entry().name != nullptr) {
            ++state_.counts.corrupt;
            state_.end(*place, SsdChange::kDamaged);
        }
        return true;
    }
    const SsdItem item{.name = hot.name,
                       .value = *value,
                       .expires_ms = hot.expires_ms,
                       .retention = victim.header.retention,
                       .put = nullptr,
                       .from = victim.header.number,
                       .slot = hot.slot};
    if (appender_.needs_segment(item)) {
        if (space_.used() + options_.segment_bytes > bytes_max_) return false;
        if (!appender_.open_segment(item.retention)) return false;
    }
    return appender_.append(item).has_value();
}

void SsdReclaimer::remove_dead(std::uint64_t number) {
    std::shared_ptr<SsdFile> file;
    {
        const std::lock_guard lock(state_.mutex);
        SsdIndex::Segment* segment = state_.index.segment(number);
        if (segment == nullptr || segment->open || segment->live != 0) return;
        file = segment->file;
    }
    if (auto synced = lives_.sync(); !synced) return;  // Later.
    remove(number, std::move(file));
}

void SsdReclaimer::remove(std::uint64_t number, std::shared_ptr<SsdFile> file) {
    const std::uint64_t releases = space_.releases();
    {
        const std::lock_guard lock(state_.mutex);
        ++state_.counts.reclaims;
        for (std::string& name : state_.index.remove_segment(number)) {
            ++state_.counts.reclaimed;
            state_.tell(std::move(name), SsdChange::kReclaimed);
        }
    }
    directory_.remove(number);
    // Its bytes are free once the last read from it has ended.
    file.reset();
    space_.wait_for_release(releases);
}

}  // namespace sluice::kv
