#pragma once

// Chat's `messages`.

#include "protocol/conversation.h"
#include "protocol/json_fields.h"

namespace sluice::protocol {

/// Check `reader.error()` afterwards.
void read_messages(FieldReader& reader, std::vector<Message>& messages);

}  // namespace sluice::protocol
