#pragma once

// What an answer of a worker that is not a stream means to the gateway.

#include <string_view>

#include "base/error.h"

namespace sluice::adapters {

/// The error behind an answer with a status other than 200: the worker's own message and place, with
/// a code that says what to do. 400 is kInvalid, or kOutOfRange where the context is too short; 413
/// is kInvalid; 404, 405, 409 and 503 are kUnavailable (another worker, or later), or kExhausted where
/// the queue is full, or kNotFound where the blocks that a decode starts from are; others are kInternal.
[[nodiscard]] Error error_of_answer(std::string_view url, int status, std::string_view body);

}  // namespace sluice::adapters
