// Any bytes as the body of a request: an outline whose spans lie in the body, or an error.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "protocol/request_outline.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string body(reinterpret_cast<const char*>(data), size);
    const auto outline = sluice::protocol::read_outline(body);
    if (!outline) return 0;
    for (const auto& span :
         {outline->model_value, outline->stream_options_value, outline->include_usage_value}) {
        if (span.begin + span.size > body.size()) std::abort();
    }
    if (!outline->model_value.empty() && body[outline->model_value.begin] != '"') std::abort();
    if (!outline->stream_options_value.empty()) {
        const char first = body[outline->stream_options_value.begin];
        if (first != '{' && first != 'n') std::abort();
    }
    if (body[outline->after_brace - 1] != '{') std::abort();
    return 0;
}
