#pragma once

// How a KvDecision stands in frames and in records.

#include "port/json_reader.h"
#include "port/json_writer.h"
#include "port/kv_decision.h"

namespace sluice::port {

/// As an object.
void write(JsonWriter& writer, const KvDecision& decision);
/// Fields that are missing are 0.
[[nodiscard]] KvDecision read_kv_decision(JsonFields fields);

}  // namespace sluice::port
