#pragma once

// What a worker tells Prometheus. Steps are counted as they happen; what the engine counts itself is
// read when somebody asks.

#include <cstdint>
#include <span>
#include <string>

#include "base/metrics.h"
#include "engine/engine.h"
#include "worker/kv_fetch.h"
#include "worker/kv_holds.h"
#include "worker/kv_publisher.h"
#include "worker/kv_tier_metrics.h"

namespace sluice::worker {

class WorkerMetrics {
public:
    WorkerMetrics();

    /// The engine's thread.
    void on_step(const engine::StepReport& step);

    /// A request got its place in the pool, with `cached_tokens` of its prompt found there.
    void on_admitted(std::uint64_t prompt_tokens, std::uint64_t cached_tokens);
    /// Blocks of prompts that pools had, and had not.
    struct PoolReads {
        std::uint64_t hits = 0;
        std::uint64_t misses = 0;
    };
    [[nodiscard]] PoolReads pool_reads() const;

    /// A request was looked for in pool and tiers; in place of `on_admitted`.
    void on_fetched(const KvFetch::Fetched& fetched);
    /// After that, its first token is there.
    void on_first_token(std::chrono::nanoseconds took, std::chrono::nanoseconds predicted);
    /// A block was left in a tier, or would have been if there had been room.
    void on_published(const std::string& tier, kvnode::Stored how);
    void on_not_published(std::size_t blocks);
    void on_hold_end(KvHolds::End how);

    /// Everything as text; there is no engine while the model is loading, and `holds` are the sequences
    /// that wait to be fetched. The loop's thread.
    [[nodiscard]] std::string text(std::span<const engine::Engine* const> engines,
                                   std::size_t holds, KvCache& cache);

private:
    void read(std::span<const engine::Engine* const> engines);

    metrics::Registry registry_;
    metrics::Gauge running_;
    metrics::Gauge waiting_;
    metrics::Family<metrics::Counter> tokens_;
    metrics::Counter prefill_tokens_;
    metrics::Counter decode_tokens_;
    metrics::Family<metrics::Counter> cached_;
    metrics::Counter cached_tokens_;
    metrics::Counter preemptions_;
    metrics::Family<metrics::Counter> drafts_;
    metrics::Counter drafts_accepted_;
    metrics::Counter drafts_rejected_;
    metrics::Family<metrics::Counter> mtp_drafts_;
    metrics::Counter mtp_accepted_;
    metrics::Counter mtp_rejected_;
    metrics::Histogram step_seconds_;
    metrics::Family<metrics::Gauge> kv_tier_bytes_;
    metrics::Gauge kv_bytes_;
    metrics::Family<metrics::Counter> kv_found_;
    metrics::Counter kv_hits_;
    metrics::Counter kv_misses_;
    metrics::Family<metrics::Counter> kv_evicted_;
    metrics::Counter kv_evictions_;
    metrics::Counter kv_corrupt_;
    metrics::Gauge kv_holds_;
    metrics::Family<metrics::Counter> kv_hold_ends_;
    metrics::Family<metrics::Counter> kv_choices_;
    metrics::Family<metrics::Histogram> kv_load_error_;
    metrics::Histogram kv_compute_error_;
    metrics::Family<metrics::Counter> kv_published_;
    metrics::Counter kv_not_published_;
    metrics::Counter numerics_violations_;
    KvTierMetrics tiers_;
    std::uint64_t fetched_ = 0;  ///< Tokens since the last read: the engines count them as cached.
    engine::EngineStats last_;   ///< What the counters read from the engine stand at.
};

}  // namespace sluice::worker
