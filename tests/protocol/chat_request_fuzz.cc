// No body may crash, and what is accepted must render into well-formed segments in both profiles.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/assert.h"
#include "protocol/chat_request.h"
#include "protocol/completion_request.h"
#include "protocol/dialect_v41.h"

namespace {

using sluice::protocol::Prompt;
using sluice::protocol::SegmentKind;

void check(const Prompt& prompt) {
    SLUICE_ASSERT(!prompt.segments.empty());
    bool after_text = false;
    for (const auto& segment : prompt.segments) {
        SLUICE_ASSERT(!segment.text.empty());
        const bool text = segment.kind == SegmentKind::kText;
        SLUICE_ASSERT(!(text && after_text));
        after_text = text;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace sluice::protocol;
    const std::string_view body(reinterpret_cast<const char*>(data), size);
    (void)parse_completion_request(body, {.model = "m"});
    const auto request = parse_chat_request(body, {.thinking = Thinking::kOn, .model = "m"});
    if (!request) return 0;
    for (const Profile profile : {Profile::kRecipe, Profile::kReference}) {
        const auto prompt = render_v41(request->conversation, {.profile = profile});
        SLUICE_ASSERT(prompt.has_value());
        check(*prompt);
    }
    return 0;
}
