#pragma once

// Recorded traffic: when each request came, how long its prompt and its answer were, and which parts
// of the prompt it shared with others. A trace holds no text; `PromptMaker` makes one of the right
// length.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::trace {

/// Prompt tokens behind one block id of a trace.
inline constexpr std::uint32_t kTraceBlockTokens = 512;

struct TraceRequest {
    std::chrono::microseconds arrival{};  ///< Since the trace's first request.
    std::uint32_t input_tokens = 0;       ///< At least 1.
    std::uint32_t output_tokens = 0;      ///< At least 1.
    /// Equal ids mean equal text, block by block from the start; empty if the trace doesn't say.
    std::vector<std::uint32_t> blocks;
};

struct Trace {
    std::string name;
    std::vector<TraceRequest> requests;  ///< At least one, in order of arrival.
};

/// Two formats, told apart by the first line: Mooncake's JSON lines {"timestamp" (ms),
/// "input_length", "output_length", "hash_ids"} and Azure's CSV "TIMESTAMP,ContextTokens,
/// GeneratedTokens". An error names the line; `limits::kTraceRequests` bounds the length.
[[nodiscard]] Result<Trace> parse_trace(std::string_view text, std::string name);
[[nodiscard]] Result<Trace> read_trace(const std::string& path);

}  // namespace sluice::trace
