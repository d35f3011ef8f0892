#pragma once

// The name of a set of weights. Two files share a fingerprint only if every metadata entry, every
// tensor's name, type, shape and place, and every weight agree, so whatever is derived from weights
// (KV blocks, logits, records) can be keyed by it.
//
// SHA-256 over the header's bytes and then XXH3-128 of each tensor's data: the data hash runs at
// memory speed and guards against accidents; it isn't a defence against forged weights.

#include <string>

#include "checkpoint/gguf_file.h"

namespace sluice::checkpoint {

/// 64 lower-case hexadecimal digits. Reads every tensor once.
[[nodiscard]] std::string fingerprint(const GgufFile& file);

}  // namespace sluice::checkpoint
