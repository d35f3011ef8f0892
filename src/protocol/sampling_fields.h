#pragma once

// Reads GenerationOptions from a request body. Names are OpenAI's, and vLLM's for extras.

#include "protocol/generation_options.h"
#include "protocol/json_fields.h"
#include "protocol/refused_fields.h"

namespace sluice::protocol {

/// Everything but the prompt and the log-probability fields, whose shape depends on the endpoint.
/// What `options` holds before stays where the request is silent. Check `reader.error()` afterwards.
void read_generation_options(FieldReader& reader, Endpoint endpoint, GenerationOptions& options);

}  // namespace sluice::protocol
