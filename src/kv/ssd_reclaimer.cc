#include "kv/ssd_reclaimer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "kv/ssd_salvage.h"

namespace sluice::kv {
namespace {

/// Files and what memory each takes; reached only by restarting again and again.
constexpr std::size_t kSegmentsMax = 2048;
/// A bound that a full disk has set grows by this share of a segment with each one opened.
constexpr std::uint64_t kGrowth = 8;
/// Segments that it leaves room for at least: with less none could ever be opened again.
constexpr std::uint64_t kLeast = 3;
/// Segments that are looked at closely, and their entries, to find the one whose reclaim gains most.
constexpr std::size_t kVictims = 8;
constexpr std::size_t kVictimEntries = 65'536;
/// What nobody has used may be carried for what follows it: this share of what puts write.
constexpr std::uint64_t kFollowedShare = 5;
/// Entries that end under one lock.
constexpr std::size_t kEndedAtATime = 1'024;

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

bool SsdReclaimer::is_over(const SsdIndex::Entry& entry, std::int64_t now_ms) const {
    // What is put again is replaced soon.
    return entry.expires_ms <= now_ms || state_.queue.find(*entry.name) != nullptr;
}

std::optional<std::uint64_t> SsdReclaimer::choose_segment(std::int64_t now_ms) {
    std::vector<std::uint64_t> numbers;
    {
        const std::lock_guard lock(state_.mutex);
        numbers = state_.index.victims(kVictims);
    }
    const auto over = [&](const SsdIndex::Entry& entry) { return is_over(entry, now_ms); };
    std::optional<std::uint64_t> best;
    double best_gain = -1;
    std::size_t looked_at = 0;
    for (const std::uint64_t number : numbers) {
        const std::lock_guard lock(state_.mutex);
        SsdIndex::Segment& segment = *state_.index.segment(number);
        // They come by what they gain at most.
        const double at_most = state_.index.gain(segment, segment.used_bytes);
        if (looked_at > kVictimEntries || at_most <= best_gain) break;
        looked_at += segment.entries.size();
        const SsdSalvage all(state_.index, segment, {}, over);
        const double gain = state_.index.gain(segment, all.bytes());
        if (gain <= best_gain) continue;
        best_gain = gain;
        best = number;
    }
    return best;
}

std::uint64_t SsdReclaimer::allowance() {
    const std::uint64_t put = state_.counts.user_bytes;
    const std::uint64_t earned = (put - std::exchange(allowed_for_, put)) / kFollowedShare;
    allowance_ = std::min(options_.segment_bytes / 2, allowance_ + earned);
    return allowance_;
}

bool SsdReclaimer::choose(Victim& victim) {
    const std::int64_t now = milliseconds(options_.clock());
    const auto number = choose_segment(now);
    if (!number) return false;
    const std::lock_guard lock(state_.mutex);
    SsdIndex::Segment& segment = *state_.index.segment(*number);
    victim.header = segment.header;
    victim.file = segment.file;
    const SsdSalvage salvage(state_.index, segment,
                             {.bytes = options_.segment_bytes / 2, .followed_bytes = allowance()},
                             [&](const SsdIndex::Entry& entry) { return is_over(entry, now); });
    allowance_ -= salvage.followed_bytes();
    for (const std::uint32_t slot : salvage.slots()) {
        const SsdIndex::Place place{.segment = &segment, .slot = slot};
        victim.hot.push_back({.name = *place.entry().name,
                              .slot = slot,
                              .offset = place.entry().offset,
                              .bytes = place.bytes(),
                              .expires_ms = place.entry().expires_ms});
    }
    return true;
}

bool SsdReclaimer::reclaim_one() {
    Victim victim;
    if (!choose(victim)) return false;
    if (!victim.hot.empty()) carry(victim);
    end_followers(victim.header.number);
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

void SsdReclaimer::end_followers(std::uint64_t number) {
    const std::int64_t now = milliseconds(options_.clock());
    std::vector<Ended> ended;
    {
        const std::lock_guard lock(state_.mutex);
        for (const SsdIndex::Entry& entry : state_.index.segment(number)->entries) {
            if (entry.name == nullptr || is_over(entry, now)) continue;
            const std::uint64_t kin = ssd_kin(*entry.name);
            if (state_.index.is_followed_outside(kin, number)) ended.push_back({.kin = kin});
        }
    }
    end_followers_of(std::move(ended));
}

void SsdReclaimer::end_followers_of(std::vector<Ended> ended) {
    // Some at a time: others wait meanwhile.
    while (!ended.empty()) {
        const std::lock_guard lock(state_.mutex);
        for (std::size_t step = 0; step < kEndedAtATime && !ended.empty(); ++step) {
            const auto follower = state_.index.next_follower(ended.back().kin, ended.back().seen);
            if (!follower) {
                ended.pop_back();
                continue;
            }
            // It is worth computing the hole: somebody has come for what is behind it.
            if (follower->entry().used) continue;
            ended.push_back({.kin = ssd_kin(*follower->entry().name)});
            ++state_.counts.reclaimed;
            state_.end(*follower, SsdChange::kReclaimed);
        }
    }
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
