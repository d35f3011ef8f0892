#pragma once

// What came of a simulation: latencies of the requests that succeeded, and beside them how many did
// not. A latency alone says nothing: who turns half of the requests away is fast.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/latency_sketch.h"
#include "base/request_class.h"
#include "record/statistics.h"
#include "sim/cache_tiers.h"
#include "sim/event_queue.h"
#include "sim/timeline.h"

namespace sluice::sim {

/// One request that is over.
struct RequestResult {
    Duration arrival{};
    std::uint32_t prompt_tokens = 0;
    std::uint32_t answer_tokens = 0;  ///< That came.
    CachedTokens cached;              ///< Of the prompt, on the first worker that took it in.
    bool ran = false;                 ///< A worker took it in.
    Outcome outcome = Outcome::kOk;
    std::optional<Duration> ttft;
    LatencySketch gaps;
    Duration duration{};
    std::uint32_t retries = 0;
    std::uint32_t resumes = 0;
    std::uint32_t fallbacks = 0;
};

/// What counts as good: a request that succeeds with both.
struct Objectives {
    Duration ttft = std::chrono::seconds(10);
    Duration tbt = std::chrono::milliseconds(200);  ///< The 99th percentile of its gaps.
};

/// Requests of one length of prompt, or all.
struct TierResults {
    std::uint64_t requests = 0;
    std::uint64_t completed = 0;
    std::uint64_t rejected = 0;
    std::uint64_t good = 0;
    std::uint64_t prompt_tokens = 0;  ///< Of requests that a worker took in.
    CachedTokens cached;
    record::Samples ttft_ms;  ///< Of those that completed.
    LatencySketch gaps;

    [[nodiscard]] double hit_share() const;
    [[nodiscard]] double hit_share(CacheSource source) const;
    void add(const RequestResult& result, const Objectives& objectives);
};

/// What workers did, one entry each.
struct WorkerResults {
    bool computes_prompts = true;  ///< Not one that is for decode or encode only.
    std::uint64_t prefill_tokens = 0;
    std::uint64_t decode_tokens = 0;
    std::uint64_t steps = 0;
    Duration computing{};  ///< What they took.
    std::uint64_t preemptions = 0;
    std::uint64_t evictions = 0;
    std::uint64_t crashes = 0;
};

/// The cache nodes at the end.
struct NodeResults {
    std::uint64_t nodes = 0;
    std::uint64_t blocks = 0;
    std::uint64_t evictions = 0;
    double imbalance = 1.0;  ///< The fullest one's blocks over the mean.
};

struct Results {
    Objectives objectives;
    TierResults all;
    std::array<TierResults, kLengthBuckets> tiers;  ///< By LengthBucket of the prompt.
    std::map<std::string, std::uint64_t, std::less<>> outcomes;
    std::vector<WorkerResults> workers;
    NodeResults nodes;
    std::uint64_t retries = 0;
    std::uint64_t resumes = 0;
    std::uint64_t fallbacks = 0;
    Duration elapsed{};  ///< From the first arrival to the last end.
    /// Leases, places in queues and held blocks after the end: none, or something leaks.
    std::uint64_t left_over = 0;
    Timeline timeline;

    void add(const RequestResult& result);
    /// Computed prompt tokens of the busiest worker over the mean of those that compute prompts; 1 if
    /// none did.
    [[nodiscard]] double imbalance() const;
    [[nodiscard]] double goodput_rps() const;
    [[nodiscard]] double rejected_share() const;
};

}  // namespace sluice::sim
