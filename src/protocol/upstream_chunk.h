#pragma once

// Reads what an OpenAI-compatible engine answers, as far as the gateway must know it: whether tokens
// came, how it ended, what was used, what was said. Engines differ in everything else, and in how
// carefully they write; nothing here fails on a field it does not know or expects.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/request_outline.h"

namespace sluice::protocol {

struct UpstreamUsage {
    std::uint64_t prompt_tokens = 0;
    std::uint64_t completion_tokens = 0;
    std::uint64_t cached_tokens = 0;
    std::uint64_t reasoning_tokens = 0;
    bool operator==(const UpstreamUsage&) const = default;
};

struct UpstreamToolCall {
    std::uint64_t index = 0;
    std::string id;
    std::string name;
    std::string arguments;  ///< Of a chunk: what is to be appended.
    bool operator==(const UpstreamToolCall&) const = default;
};

/// Of one event of a stream, or of a whole answer, which reads like one event that says all.
struct UpstreamChunk {
    bool is_object = false;  ///< False if it is no JSON object: nothing else is set.
    bool has_error = false;  ///< It says `error`.
    std::string error_message;
    bool has_choices = false;   ///< `choices` is there, and not empty.
    bool has_output = false;    ///< Some text, thinking or tool call is in it.
    std::string finish_reason;  ///< Of the first choice; empty if null or absent.
    std::optional<UpstreamUsage> usage;
    std::string system_fingerprint;
    std::string model;
    BodySpan model_value;  ///< Where it stands in the text, quotes included; empty if absent.

    // Of the first choice, only if asked for.
    std::string text;
    std::string reasoning;
    std::vector<UpstreamToolCall> tool_calls;
};

enum class ChunkDetail : std::uint8_t {
    kFacts,    ///< All but the words.
    kContent,  ///< Text, thinking and tool calls, too.
};

[[nodiscard]] UpstreamChunk read_upstream_chunk(std::string_view json, ChunkDetail detail);

}  // namespace sluice::protocol
