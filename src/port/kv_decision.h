#pragma once

// What a worker decided about the cached blocks of a prompt, what it had predicted, and what came of
// it. It goes from the worker's frame into the request's record, in one form: times in microseconds.

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::port {

/// One place that had some that the engine's pool lacked.
struct KvLoad {
    std::string source;  ///< As in a frame's cached_tokens_by_source.
    std::string choice;  ///< "load", "recompute", "probe".
    std::uint64_t tokens = 0;
    std::uint64_t predicted_us = 0;  ///< The load.
    std::uint64_t compute_us = 0;    ///< Computing them instead, predicted, too;
    std::uint64_t queue_us = 0;      ///< and what the engine had to do before.
    std::uint64_t took_us = 0;       ///< 0 if nothing was asked for.
    bool operator==(const KvLoad&) const = default;
};

struct KvDecision {
    std::vector<KvLoad> loads;
    /// From the loads' end until the first token: the queue, and what was left to compute.
    std::uint64_t compute_predicted_us = 0;
    std::uint64_t compute_took_us = 0;
    bool operator==(const KvDecision&) const = default;
};

}  // namespace sluice::port
