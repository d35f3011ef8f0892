#include "protocol/response.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "protocol/json_writer.h"

namespace sluice::protocol {

std::string_view to_string(FinishReason reason) {
    switch (reason) {
        case FinishReason::kStop: return "stop";
        case FinishReason::kLength: return "length";
        case FinishReason::kToolCalls: return "tool_calls";
        case FinishReason::kContentFilter: return "content_filter";
    }
    return "stop";
}

void append_usage(std::string& out, const Usage& usage) {
    const std::uint64_t cached = std::min(usage.cached_tokens, usage.prompt_tokens);
    fmt::format_to(
        std::back_inserter(out),
        R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},)"
        R"("prompt_tokens_details":{{"cached_tokens":{}}},)"
        R"("completion_tokens_details":{{"reasoning_tokens":{},"drafted":{},"accepted":{}}},)"
        R"("prompt_cache_hit_tokens":{},"prompt_cache_miss_tokens":{}}})",
        usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens + usage.completion_tokens,
        cached, usage.reasoning_tokens, usage.drafted, usage.accepted, cached,
        usage.prompt_tokens - cached);
}

void append_head(std::string& out, const ResponseInfo& info, std::string_view object) {
    out += R"("id":)";
    append_json_string(out, info.id);
    fmt::format_to(std::back_inserter(out), R"(,"object":"{}","created":{},"model":)", object,
                   info.created);
    append_json_string(out, info.model);
    if (info.system_fingerprint.empty()) return;
    out += R"(,"system_fingerprint":)";
    append_json_string(out, info.system_fingerprint);
}

}  // namespace sluice::protocol
