#include "gateway/output_check.h"

#include <algorithm>

#include "traffic/comparison.h"

namespace sluice::gateway {

bool is_invalid(RequestKind kind, const CollectedAnswer& answer) {
    if (answer.cut || answer.finish_reason == "length") return false;
    const auto broken = [](const CollectedToolCall& call) {
        return !traffic::is_json(call.arguments);
    };
    if (std::ranges::any_of(answer.tool_calls, broken)) return true;
    return kind == RequestKind::kJsonSchema && answer.tool_calls.empty() &&
           !traffic::is_json(answer.text);
}

}  // namespace sluice::gateway
