#pragma once

// What an engine refuses before it begins: options that make no sense, and requests that it can't carry
// out whatever else runs. Errors name the option or the field.

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "engine/request.h"

namespace sluice::engine {

struct EngineOptions;

[[nodiscard]] Result<void> check_options(const EngineOptions& options);

/// `context_tokens`: the most that prompt and output may have together.
[[nodiscard]] Result<void> check_request(const Request& request, std::uint32_t vocabulary,
                                         std::size_t context_tokens);

}  // namespace sluice::engine
