#pragma once

// What the names of an engine's blocks begin with.

#include <string>

#include "engine/model.h"
#include "kv/block_key.h"

namespace sluice::engine {

/// Without a salt. If `build` is not empty, blocks of other builds have other names.
[[nodiscard]] kv::BlockKeyRoot block_root(const Model& model, std::size_t block_tokens,
                                          const std::string& build);

}  // namespace sluice::engine
