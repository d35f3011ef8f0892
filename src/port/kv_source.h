#pragma once

// How a KvSource stands in requests and in frames. For the sources of this folder only.

#include "port/generate.h"
#include "port/json_reader.h"
#include "port/json_writer.h"

namespace sluice::port {

/// The fields of an object that the caller opened.
void write_fields(JsonWriter& writer, const KvSource& source);
void read_fields(JsonFields& fields, KvSource& source);

}  // namespace sluice::port
