#pragma once

// What a request asks of generation, apart from the prompt: the fields Chat Completions and
// Completions share. What was left out stays visible as such, because a pool's defaults, not the
// protocol's, fill it in.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/sampling_params.h"

namespace sluice::protocol {

struct GenerationOptions {
    std::string model;

    /// Holds every value that was given; the neutral one where none was. `seed` is 0 if not given,
    /// `max_new_tokens` is meaningless until the caller has resolved it.
    SamplingParams sampling;
    std::optional<std::uint32_t> max_tokens;
    std::optional<std::uint64_t> seed;
    std::optional<float> temperature;
    std::optional<float> top_p;

    std::vector<std::string> stop;  ///< Each non-empty, at most `limits::kStopStrings`.
    bool stream = false;
    bool include_usage = false;  ///< A chunk with the usage ends the stream.

    bool logprobs = false;
    std::uint32_t top_logprobs = 0;  ///< Alternatives per token; only with `logprobs`.

    std::string prompt_cache_key;  ///< Names the conversation; empty if absent.
    std::string user;              ///< The same, with less weight.
};

}  // namespace sluice::protocol
