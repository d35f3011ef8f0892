#pragma once

// Between the port's words and the engine's.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "base/hash.h"
#include "engine/engine.h"
#include "engine/request.h"
#include "port/generate.h"
#include "port/port_error.h"
#include "port/server_info.h"
#include "worker/kv_hops.h"

namespace sluice::worker {

[[nodiscard]] engine::Request to_engine(port::GenerateRequest request);

/// `abort_reason` is what the client is told if the output ends with an abort. Of the cached tokens,
/// up to `fetched_tokens` came from the places they are listed by; the rest were in the pool.
[[nodiscard]] port::GenerateFrame to_frame(
    std::string rid, engine::Output output, const std::string& abort_reason,
    const std::map<std::string, std::size_t>& fetched_tokens);

/// Nothing if there was nothing to decide. `predicted` is of computing what was not loaded.
[[nodiscard]] std::optional<port::KvDecision> to_decision(std::span<const LoadRecord> loads,
                                                          std::chrono::nanoseconds predicted);
[[nodiscard]] std::uint64_t to_microseconds(std::chrono::nanoseconds time);

/// A refusal of Engine::submit as the client sees it, places as they are on the wire.
struct Refusal {
    int status = 400;
    port::PortError error;
};
[[nodiscard]] Refusal to_refusal(const Error& error);

/// `about` with everything filled in that the engine knows of itself; `ranks` are like it.
[[nodiscard]] port::ServerInfo describe(const engine::Engine& engine, port::ServerInfo about,
                                        std::size_t ranks);

/// Digest of what a worker is made of: who computed a block.
[[nodiscard]] Sha256Digest version_digest(const port::ServerInfo& about);

/// Bytes of KV that one block of the pool holds, all layers together.
[[nodiscard]] std::uint64_t block_bytes(const engine::Engine& engine);

}  // namespace sluice::worker
