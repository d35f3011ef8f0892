#pragma once

// What every answer carries, whatever its protocol.

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::protocol {

/// The data of the event that ends a stream of OpenAI's protocols.
inline constexpr std::string_view kStreamEnd = "[DONE]";

struct ResponseInfo {
    std::string id;
    std::int64_t created = 0;  ///< Seconds since 1970; given, as nothing here owns a clock.
    std::string model;
    std::string system_fingerprint;  ///< Left out if empty.
};

struct Usage {
    std::uint64_t prompt_tokens = 0;
    std::uint64_t cached_tokens = 0;  ///< Of the prompt, not computed by this request.
    std::uint64_t completion_tokens = 0;
    std::uint64_t reasoning_tokens = 0;  ///< Of the completion.
    std::uint64_t drafted = 0;   ///< Tokens that speculation guessed and the engine checked.
    std::uint64_t accepted = 0;  ///< Those that were right; they are in the completion.
};

enum class FinishReason : std::uint8_t { kStop, kLength, kToolCalls, kContentFilter };

/// As the protocol spells it: "stop", "length", "tool_calls", "content_filter".
[[nodiscard]] std::string_view to_string(FinishReason reason);

/// Appends `{"prompt_tokens":..}` with OpenAI's and DeepSeek's fields.
void append_usage(std::string& out, const Usage& usage);

/// Appends `"id":..,"object":OBJECT,"created":..,"model":..[,"system_fingerprint":..]`.
void append_head(std::string& out, const ResponseInfo& info, std::string_view object);

}  // namespace sluice::protocol
