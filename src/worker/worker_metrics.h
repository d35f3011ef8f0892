#pragma once

// What a worker tells Prometheus. Steps are counted as they happen; what the engine counts itself is
// read when somebody asks.

#include <cstdint>
#include <string>

#include "base/metrics.h"
#include "engine/engine.h"

namespace sluice::worker {

class WorkerMetrics {
public:
    WorkerMetrics();

    /// The engine's thread.
    void on_step(const engine::StepReport& step);

    /// A request got its place in the pool, with `cached_tokens` of its prompt found there.
    void on_admitted(std::uint64_t prompt_tokens, std::uint64_t cached_tokens);

    /// Everything as text; `engine` is null while the model is loading. The loop's thread.
    [[nodiscard]] std::string text(const engine::Engine* engine);

private:
    void read(const engine::Engine& engine);

    metrics::Registry registry_;
    metrics::Gauge running_;
    metrics::Gauge waiting_;
    metrics::Family<metrics::Counter> tokens_;
    metrics::Counter prefill_tokens_;
    metrics::Counter decode_tokens_;
    metrics::Counter cached_tokens_;
    metrics::Counter preemptions_;
    metrics::Family<metrics::Counter> drafts_;
    metrics::Counter drafts_accepted_;
    metrics::Counter drafts_rejected_;
    metrics::Family<metrics::Counter> mtp_drafts_;
    metrics::Counter mtp_accepted_;
    metrics::Counter mtp_rejected_;
    metrics::Histogram step_seconds_;
    metrics::Gauge kv_bytes_;
    metrics::Counter kv_hits_;
    metrics::Counter kv_misses_;
    metrics::Counter kv_evictions_;
    engine::EngineStats last_;  ///< What the counters read from the engine stand at.
};

}  // namespace sluice::worker
