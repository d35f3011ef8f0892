#pragma once

// What a simulation is sent and when: a load plan (trace/load_plan.h), with block keys instead of text.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "sim/block_cache.h"
#include "sim/event_queue.h"
#include "trace/load_plan.h"
#include "trace/trace.h"

namespace sluice::sim {

struct SimWork {
    Duration at{};
    std::uint32_t prompt_tokens = 0;
    std::uint32_t answer_tokens = 0;
    std::uint32_t image_tokens = 0;
    /// One key for each block of the prompt, the last and partial one included.
    std::shared_ptr<const std::vector<BlockKey>> chain;
    bool poison = false;  ///< Engines crash on it.
};

struct WorkloadOptions {
    double speed = 1.0;        ///< Requests come so many times as fast; above 0.
    double image_share = 0.0;  ///< Of the requests, so many have an image.
    std::uint32_t image_tokens = 1'024;
    std::uint64_t seed = 0;
};

[[nodiscard]] std::vector<SimWork> make_workload(const std::vector<trace::PlannedRequest>& plan,
                                                 const WorkloadOptions& options);

/// A part of a trace: `count` requests (0: all that are left) from the one at `first` on, as if the
/// trace began there.
struct Slice {
    std::size_t first = 0;
    std::size_t count = 0;
};
/// "1000:500" or "1000:".
[[nodiscard]] Result<Slice> parse_slice(std::string_view text);
/// Error `kOutOfRange` where the trace has no such request.
[[nodiscard]] Result<void> cut(trace::Trace& trace, const Slice& slice);

}  // namespace sluice::sim
