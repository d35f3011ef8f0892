#pragma once

// POST /v1/chat/completions, the request. Strict about what it knows, indifferent to what it does
// not: a wrong type or a number out of range is an error with the field's path, a known field that
// would change the answer and can't be honoured yet is refused by name, an unknown name is ignored.

#include <string>
#include <string_view>

#include "base/error.h"
#include "protocol/conversation.h"
#include "protocol/generation_options.h"

namespace sluice::protocol {

/// What holds where the request is silent.
struct ChatDefaults {
    Thinking thinking = Thinking::kOff;
    std::string model;  ///< Empty: a request must name its model.
};

struct ChatRequest {
    GenerationOptions options;
    Conversation conversation;
};

/// Errors are `kInvalid`, `kOutOfRange` or `kUnsupported`, with the field's path as place.
[[nodiscard]] Result<ChatRequest> parse_chat_request(std::string_view body,
                                                     const ChatDefaults& defaults = {});

}  // namespace sluice::protocol
