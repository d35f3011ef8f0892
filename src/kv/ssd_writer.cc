#include "kv/ssd_writer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace sluice::kv {
namespace {

/// What is taken from the queue at a time: enough for long writes, little enough that syncs and
/// erasures don't wait.
constexpr std::size_t kBatchBytes = 4 * 1024 * 1024;
constexpr std::size_t kBatchEntries = 256;
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{30'000};
constexpr std::chrono::seconds kSweepEvery{1};
constexpr std::size_t kSweepSteps = 64;
/// How long the end may take over writing what waits.
constexpr std::chrono::seconds kEndIn{5};

}  // namespace

SsdWriter::SsdWriter(SsdState& state, const SsdDirectory& directory, const SsdOptions& options,
                     const SsdFaults& faults, SsdSpace& space)
    : state_(state),
      directory_(directory),
      options_(options),
      appender_(state, directory,
                {.segment_bytes = options.segment_bytes,
                 .access = options.direct ? SsdAccess::kDirect : SsdAccess::kCached},
                faults, space),
      lives_(state, directory, faults),
      reclaimer_(state, directory, options, appender_, lives_, space),
      next_sync_(Clock::now() + options.sync_every),
      thread_([this] { work(); }) {}

SsdWriter::~SsdWriter() {
    {
        const std::lock_guard lock(state_.mutex);
        state_.stopping = true;
    }
    state_.work.notify_all();
    thread_.join();
}

void SsdWriter::work() {
    reclaimer_.shrink();
    while (wait()) {
        write_some();
        run_erasures();
        flush_lives();
        run_syncs();
        sync_regularly();
        sweep();
        tell_listener();
    }
    finish();
}

bool SsdWriter::wait() {
    std::unique_lock lock(state_.mutex);
    const Clock::time_point now = Clock::now();
    const Clock::time_point sweep = now + kSweepEvery;
    const Clock::time_point until = next_sync_ > now ? std::min(sweep, next_sync_) : sweep;
    state_.work.wait_until(lock, until, [this] {
        return state_.stopping || !state_.queue.empty() || !state_.syncs.empty() ||
               !state_.erasures.empty() || !state_.events.empty() ||
               (state_.index.dirty() && Clock::now() >= lives_paused_until_);
    });
    return !state_.stopping;
}

void SsdWriter::finish() {
    const auto end = Clock::now() + kEndIn;
    for (;;) {
        {
            const std::lock_guard lock(state_.mutex);
            if (state_.queue.empty() || Clock::now() >= end) break;
        }
        write_some();
    }
    run_erasures();
    appender_.seal_all();
    if (auto synced = lives_.sync(); !synced)
        log::warn("{}: lives: {}", directory_.path(), synced.error().to_string());
    {
        // What was too slow is lost.
        const std::lock_guard lock(state_.mutex);
        while (const auto put = state_.queue.pop()) state_.lose(put);
    }
    run_syncs();
    tell_listener();
}

void SsdWriter::write_some() {
    std::size_t bytes = 0;
    bool written = false;
    for (std::size_t count = 0; count < kBatchEntries && bytes < kBatchBytes; ++count) {
        std::shared_ptr<SsdPut> put;
        std::int64_t expires_ms = 0;
        {
            const std::lock_guard lock(state_.mutex);
            put = state_.queue.pop();
            if (put == nullptr) break;
            if (put->taken_back) {
                state_.queue.finish(put);
                continue;
            }
            expires_ms = put->expires_ms;
        }
        bytes += put->value.bytes.size();
        written |= write(put, expires_ms);
    }
    if (auto flushed = appender_.flush(); !flushed) {
        failed(flushed.error());
    } else if (written && Clock::now() >= paused_until_) {
        pause_ = {};
    }
}

bool SsdWriter::write(const std::shared_ptr<SsdPut>& put, std::int64_t expires_ms) {
    const SsdItem item{.name = put->name,
                       .value = put->value.bytes,
                       .expires_ms = expires_ms,
                       .retention = put->retention,
                       .put = put,
                       .from = 0,
                       .slot = 0};
    bool lost = Clock::now() < paused_until_;
    if (!lost && appender_.needs_segment(item)) {
        if (auto opened = open_segment(item.retention); !opened) {
            failed(opened.error());
            lost = true;
        }
    }
    if (lost) {
        const std::lock_guard lock(state_.mutex);
        state_.lose(put);
        return false;
    }
    auto appended = appender_.append(item);
    if (!appended) failed(appended.error());
    return appended.has_value();
}

Result<void> SsdWriter::open_segment(Retention retention) {
    if (auto room = reclaimer_.make_room(); !room) return room;
    auto opened = appender_.open_segment(retention);
    // Somebody else fills the disk: keep to what is there. Once, because when it goes on, our giving
    // way doesn't help.
    if (!opened && opened.error().code() == ErrorCode::kExhausted && !gave_way_) {
        gave_way_ = true;
        reclaimer_.disk_is_full();
        if (auto room = reclaimer_.make_room(); !room) return room;
        opened = appender_.open_segment(retention);
    }
    if (opened) {
        gave_way_ = false;
        reclaimer_.segment_opened();
    }
    return opened;
}

void SsdWriter::failed(const Error& error) {
    pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
    paused_until_ = Clock::now() + pause_;
    log::warn("{}: can't write, and won't for {} ms: {}", directory_.path(), pause_.count(),
              error.to_string());
}

void SsdWriter::flush_lives() {
    if (Clock::now() < lives_paused_until_) return;
    if (auto flushed = lives_.flush(); !flushed) {
        lives_paused_until_ = Clock::now() + kSweepEvery;
        log::warn("{}: lives: {}", directory_.path(), flushed.error().to_string());
    }
}

void SsdWriter::run_syncs() {
    std::vector<SsdState::Sync> due;
    bool lost = false;
    {
        const std::lock_guard lock(state_.mutex);
        const auto later = std::partition(
            state_.syncs.begin(), state_.syncs.end(),
            [this](const SsdState::Sync& sync) { return sync.after > state_.queue.finished(); });
        std::move(later, state_.syncs.end(), std::back_inserter(due));
        state_.syncs.erase(later, state_.syncs.end());
        if (due.empty()) return;
        lost = std::exchange(failures_told_, state_.counts.write_failures) !=
               state_.counts.write_failures;
    }
    Result<void> result = sync_all();
    if (lost && result) {
        result = std::unexpected(
            Error(ErrorCode::kIo, "some values could not be written", directory_.path()));
    }
    // One that nobody asked for may have failed before.
    if (auto before = std::exchange(sync_failed_, {}); !before && result) result = before;
    for (auto& sync : due) sync.done(result);
}

Result<void> SsdWriter::sync_all() {
    next_sync_ = Clock::now() + options_.sync_every;
    Result<void> result = appender_.sync();
    if (auto lives = lives_.sync(); !lives) result = lives;
    return result;
}

void SsdWriter::sync_regularly() {
    if (Clock::now() < next_sync_) return;
    const Result<void> synced = sync_all();
    if (synced) return;
    // A disk that stays like that doesn't fill the log.
    if (sync_failed_) {
        log::warn("{}: what was written may not survive a power cut: {}", directory_.path(),
                  synced.error().to_string());
    }
    sync_failed_ = synced;
    const std::lock_guard lock(state_.mutex);
    ++state_.counts.sync_failures;
}

void SsdWriter::run_erasures() {
    std::vector<SsdState::Erasure> erasures;
    {
        const std::lock_guard lock(state_.mutex);
        erasures = std::exchange(state_.erasures, {});
        for (auto& erasure : erasures)
            erasure.erased = state_.queue.take_back_if(
                [&](const SsdPut& put) { return erasure.which(put.name); });
    }
    for (auto& erasure : erasures) {
        SsdIndex::Cursor cursor;
        while (erase_some(cursor, erasure)) {
        }
        erasure.done(erasure.erased);
    }
}

bool SsdWriter::erase_some(SsdIndex::Cursor& cursor, SsdState::Erasure& erasure) {
    std::vector<SsdIndex::Place> places;
    const std::lock_guard lock(state_.mutex);
    const bool more = state_.index.walk(cursor, places);
    for (const SsdIndex::Place& place : places) {
        if (!erasure.which(*place.entry().name)) continue;
        ++erasure.erased;
        state_.end(place, SsdChange::kErased);
    }
    return more;
}

void SsdWriter::sweep() {
    if (Clock::now() < next_sweep_) return;
    next_sweep_ = Clock::now() + kSweepEvery;
    for (std::size_t step = 0; step < kSweepSteps; ++step) {
        if (sweep_some()) continue;
        swept_ = {};
        break;
    }
    std::vector<std::uint64_t> dead;
    {
        const std::lock_guard lock(state_.mutex);
        dead = state_.index.dead_segments();
    }
    for (const std::uint64_t number : dead) reclaimer_.remove_dead(number);
}

bool SsdWriter::sweep_some() {
    const auto now =
        std::chrono::duration_cast<std::chrono::milliseconds>(options_.clock().time_since_epoch())
            .count();
    std::vector<SsdIndex::Place> places;
    const std::lock_guard lock(state_.mutex);
    const bool more = state_.index.walk(swept_, places);
    for (const SsdIndex::Place& place : places) {
        if (place.entry().expires_ms > now) continue;
        ++state_.counts.expired;
        state_.end(place, SsdChange::kExpired);
    }
    return more;
}

void SsdWriter::tell_listener() {
    std::vector<SsdEvent> events;
    {
        const std::lock_guard lock(state_.mutex);
        events = std::exchange(state_.events, {});
    }
    if (!events.empty()) options_.listener(events);
}

}  // namespace sluice::kv
