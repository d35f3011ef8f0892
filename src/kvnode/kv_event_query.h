#pragma once

// The question of GET /kv_events; see port/kv_events.h.

#include <string_view>

#include "base/error.h"
#include "port/kv_events.h"

namespace sluice::kvnode {

/// Of the part of the URL behind '?'. Errors name the field.
[[nodiscard]] Result<port::KvEventQuery> parse_kv_event_query(std::string_view text);

}  // namespace sluice::kvnode
