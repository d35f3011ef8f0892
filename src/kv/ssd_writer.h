#pragma once

// The thread that writes: takes puts from the queue, appends them, reclaims for them, and keeps lives,
// syncs, erasures and expiries on the way.

#include <chrono>
#include <thread>

#include "kv/ssd_appender.h"
#include "kv/ssd_life_keeper.h"
#include "kv/ssd_reclaimer.h"

namespace sluice::kv {

class SsdWriter {
public:
    SsdWriter(SsdState& state, const SsdDirectory& directory, const SsdOptions& options,
              const SsdFaults& faults, SsdSpace& space);
    /// Writes what waits, within a bounded time, and gives open segments their footers.
    ~SsdWriter();
    SsdWriter(const SsdWriter&) = delete;
    SsdWriter& operator=(const SsdWriter&) = delete;

    [[nodiscard]] std::uint64_t bytes_max() const { return reclaimer_.bytes_max(); }

private:
    using Clock = std::chrono::steady_clock;

    void work();
    /// Sleeps until there is something to do. False: it is time to end.
    [[nodiscard]] bool wait();
    void finish();
    void write_some();
    [[nodiscard]] bool write(const std::shared_ptr<SsdPut>& put, std::int64_t expires_ms);
    [[nodiscard]] Result<void> open_segment(Retention retention);
    void failed(const Error& error);
    void flush_lives();
    void run_syncs();
    /// Without anybody asking, now and then.
    void sync_regularly();
    /// All that was written, and all deaths.
    [[nodiscard]] Result<void> sync_all();
    void run_erasures();
    /// False: all were seen.
    [[nodiscard]] bool erase_some(SsdIndex::Cursor& cursor, SsdState::Erasure& erasure);
    void sweep();
    [[nodiscard]] bool sweep_some();
    void tell_listener();

    SsdState& state_;
    const SsdDirectory& directory_;
    const SsdOptions& options_;
    SsdAppender appender_;
    SsdLifeKeeper lives_;
    SsdReclaimer reclaimer_;
    std::uint64_t failures_told_ = 0;  ///< Write failures that a sync has reported.
    SsdIndex::Cursor swept_;           ///< What has expired was removed up to here.
    Clock::time_point next_sweep_{};
    Clock::time_point next_sync_{};
    Result<void> sync_failed_;  ///< One that nobody asked for, and that nobody was told of.
    Clock::time_point lives_paused_until_{};
    Clock::time_point paused_until_{};  ///< After a failure nothing is written for a while.
    std::chrono::milliseconds pause_{0};
    bool gave_way_ = false;  ///< Room was made for a full disk since a segment was opened last.
    std::thread thread_;
};

}  // namespace sluice::kv
