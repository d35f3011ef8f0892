#pragma once

// Splits a request between two engines, as two workers do, without anything in between.

#include <cstddef>
#include <set>

#include "tests/engine/drive.h"

namespace sluice::engine {

/// What a prefill left behind.
struct Prefilled {
    std::shared_ptr<Answer> answer;
    std::shared_ptr<const HeldSequence> held;  ///< Null if the request ended.
};

/// Runs the request up to its first new token.
[[nodiscard]] Prefilled prefill(Engine& engine, Request request);

/// Copies the held blocks into the other engine's pool, without those in `lost`; returns what
/// Request::imported_tokens is to be.
std::size_t carry(const HeldSequence& held, Engine& to, const std::set<std::size_t>& lost = {});

/// `request` after `given`, with what `carry` brought.
[[nodiscard]] Request decoding(Request request, std::vector<TokenId> given, std::size_t imported);

}  // namespace sluice::engine
