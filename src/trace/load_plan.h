#pragma once

// What a load test will send and when, worked out before the first request: from a recorded trace or
// from a mix of shapes. The same options and seed give the same plan on every machine.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/request_class.h"
#include "trace/trace.h"

namespace sluice::trace {

/// One sort of request in a mix.
struct Shape {
    std::uint32_t input_tokens = 0;
    std::uint32_t output_tokens = 0;
    RequestKind kind = RequestKind::kText;
    double weight = 1.0;  ///< Share among the weights of the mix; above 0.
};

/// "512/128,4000/64:seeded*0.2": input/output tokens, a kind (text if none is given) and a weight (1
/// if none is given); or the name of a built-in mix, "chat" or "code".
[[nodiscard]] Result<std::vector<Shape>> parse_mix(std::string_view text);

struct PlannedRequest {
    std::chrono::microseconds at{};  ///< When to send it; zero for all if nothing paces them.
    std::uint32_t input_tokens = 0;
    std::uint32_t output_tokens = 0;
    RequestKind kind = RequestKind::kText;
    std::uint64_t text_seed = 0;        ///< Of its own text.
    std::vector<std::uint32_t> blocks;  ///< Text shared with others comes before it.
};

struct PlanOptions {
    /// Requests in all. A trace that is shorter ends earlier.
    std::size_t requests = 0;
    /// Mean arrivals a second: a mix comes as a Poisson process, a trace is stretched to it.
    /// Without it a trace keeps its own times and a mix comes all at once.
    std::optional<double> rate;
    std::uint64_t seed = 0;
};

[[nodiscard]] std::vector<PlannedRequest> plan_load(const Trace& trace, const PlanOptions& options);
/// `shapes` must not be empty.
[[nodiscard]] std::vector<PlannedRequest> plan_load(const std::vector<Shape>& shapes,
                                                    const PlanOptions& options);

}  // namespace sluice::trace
