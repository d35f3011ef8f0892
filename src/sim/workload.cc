#include "sim/workload.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "trace/random.h"
#include "trace/read_number.h"

namespace sluice::sim {
namespace {

using trace::kTraceBlockTokens;

/// The key of a block that follows `parent` (0: none).
BlockKey next_key(BlockKey parent, std::uint64_t text) {
    return trace::Random(parent ^ trace::Random(text).next()).next();
}

/// Blocks that the trace names are shared; the rest of a prompt is like no other.
std::vector<BlockKey> chain_of(const trace::PlannedRequest& request) {
    const std::size_t count =
        (request.input_tokens + kTraceBlockTokens - 1) / std::size_t{kTraceBlockTokens};
    std::vector<BlockKey> chain;
    chain.reserve(count);
    BlockKey parent = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const bool shared = i < request.blocks.size();
        parent = next_key(parent, shared ? request.blocks[i] : request.text_seed + i);
        chain.push_back(parent);
    }
    return chain;
}

}  // namespace

std::vector<SimWork> make_workload(const std::vector<trace::PlannedRequest>& plan,
                                   const WorkloadOptions& options) {
    trace::Random random(options.seed);
    std::vector<SimWork> work;
    work.reserve(plan.size());
    for (const trace::PlannedRequest& request : plan) {
        const bool image = random.uniform() < options.image_share;
        const double at = std::chrono::duration<double, std::micro>(request.at).count();
        work.push_back({.at = from_microseconds(at / options.speed),
                        .prompt_tokens = request.input_tokens,
                        .answer_tokens = request.output_tokens,
                        .image_tokens = image ? options.image_tokens : 0,
                        .chain = std::make_shared<const std::vector<BlockKey>>(chain_of(request))});
    }
    std::ranges::stable_sort(work, {}, &SimWork::at);
    return work;
}

Result<Slice> parse_slice(std::string_view text) {
    Slice slice;
    const std::size_t colon = text.find(':');
    const std::string_view count = colon == std::string_view::npos ? text : text.substr(colon + 1);
    if (colon == std::string_view::npos ||
        !trace::read_number(text.substr(0, colon), slice.first) ||
        (!count.empty() && !trace::read_number(count, slice.count))) {
        return std::unexpected(Error::invalid(
            fmt::format("\"{}\" must be FIRST:COUNT, as in 1000:500", text), "slice"));
    }
    return slice;
}

Result<void> cut(trace::Trace& trace, const Slice& slice) {
    if (slice.first >= trace.requests.size()) {
        return std::unexpected(
            Error::out_of_range("first request", slice.first, trace.requests.size())
                .within(trace.name));
    }
    auto& requests = trace.requests;
    requests.erase(requests.begin(), requests.begin() + static_cast<std::ptrdiff_t>(slice.first));
    if (slice.count > 0 && slice.count < requests.size()) requests.resize(slice.count);
    const auto start = requests.front().arrival;
    for (trace::TraceRequest& request : requests) request.arrival -= start;
    return {};
}

}  // namespace sluice::sim
