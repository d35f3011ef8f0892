#pragma once

// What a simulated engine is like: how long its steps take, how much it holds, how it orders its work.
//
// The time of a step is a sum: one term for the step itself and one in proportion to each thing that it
// does. These are the terms of the native engine's own forecast (engine/step_forecast.h), with prompts
// and answers apart. `sluice bench --fit` measures them; the defaults are an accelerator that computes
// 10,240 prompt tokens a second.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::sim {

/// Which prompt of several is computed first.
enum class PrefillOrder : std::uint8_t {
    kArrival,   ///< First come, first served: vLLM, SGLang.
    kShortest,  ///< The shortest rest first, a quarter of each step for the oldest: native.
};

struct EngineParameters {
    // ---- The time of a step, in microseconds
    double step_us = 4'000.0;              ///< Of a step, whatever it does.
    double prefill_row_us = 1e6 / 10'240;  ///< Of a prompt token.
    double prefill_attended_us = 0.0;      ///< Of a position that a prompt token looks at.
    /// The same position costs so much more if it is beyond the first `near_tokens`: a processor's
    /// caches hold the keys and values of only so many.
    double prefill_far_us = 0.0;
    std::uint32_t near_tokens = 2'048;
    double decode_row_us = 150.0;      ///< Of a sequence that gets its next token.
    double decode_attended_us = 0.02;  ///< Of a position that its query looks at.
    /// The same for positions beyond the first `decode_near` of all queries of a step: each sequence has
    /// keys and values of its own, and caches hold only so many.
    double decode_far_us = 0.0;
    std::uint32_t decode_near = 1'024;
    double encode_row_us = 40.0;  ///< Of an image token.
    /// For each other engine on its machine that computes, it takes by such a share longer.
    double neighbour_share = 0.0;

    // ---- What its own forecast of a step begins with (engine/step_forecast.h), in microseconds
    /// By it the engine keeps within `step_time_us`, and it learns from each step. 0: it knows what its
    /// steps take.
    double forecast_step_us = 0.0;
    double forecast_row_us = 0.0;
    double forecast_attended_us = 0.0;
    double forecast_logits_us = 0.0;

    // ---- Around the engine
    double request_us = 1'000.0;  ///< Of a request, before the engine has it.
    /// Of each of its prompt tokens, in the gateway's one thread: requests that come together wait for
    /// each other there.
    double request_token_us = 0.0;
    double handover_token_us = 2.0;  ///< To move the KV of a token to another worker.

    // ---- Tiers of the cache behind its pool
    double dram_token_us = 3.0;             ///< To load a token's KV from its machine's memory,
    double node_token_us = 10.0;            ///< and from a cache node.
    std::uint32_t kv_token_bytes = 70'272;  ///< DeepSeek-V3: 61 layers of 576 values of two bytes.

    // ---- Bounds
    std::uint32_t blocks = 8'000;  ///< Of `trace::kTraceBlockTokens` tokens of KV each.
    std::uint32_t running_max = 128;
    std::uint32_t waiting_max = 8'192;
    std::uint32_t step_tokens = 2'048;
    /// A step with answers in it takes in no more of prompts than fits into this.
    double step_time_us = 100'000.0;
    PrefillOrder order = PrefillOrder::kArrival;

    bool operator==(const EngineParameters&) const = default;
};

[[nodiscard]] std::string_view to_string(PrefillOrder order);

/// TOML; an error names the line. What the text does not say keeps its default.
[[nodiscard]] Result<EngineParameters> parse_engine_parameters(std::string_view text,
                                                               std::string name);
[[nodiscard]] Result<EngineParameters> read_engine_parameters(const std::string& path);
/// What `parse_engine_parameters` reads back as the same.
[[nodiscard]] std::string to_toml(const EngineParameters& parameters);

/// What one step does, as far as it costs time.
struct StepLoad {
    std::uint64_t prefill_rows = 0;
    std::uint64_t prefill_attended = 0;
    std::uint64_t prefill_far = 0;  ///< Those of them that are beyond the near ones.
    std::uint64_t decode_rows = 0;
    std::uint64_t decode_attended = 0;
    std::uint64_t decode_far = 0;  ///< Those of them that are beyond the near ones.
    std::uint64_t encode_rows = 0;

    /// Adds `count` prompt tokens at positions first, first + 1, ...; the first `near` are near.
    void add_prefill(std::uint64_t first, std::uint64_t count, std::uint64_t near) {
        prefill_rows += count;
        prefill_attended += looked_at(first + count) - looked_at(first);
        prefill_far += beyond(first + count, near) - beyond(first, near);
    }

    /// Adds sequences that answer, whose queries look at `attended` positions together; of all such
    /// positions in the step the first `near` are near.
    void add_decode(std::uint64_t sequences, std::uint64_t attended, std::uint64_t near) {
        decode_rows += sequences;
        decode_attended += attended;
        decode_far = decode_attended - std::min(decode_attended, near);
    }

private:
    /// By the first `count` tokens of a sequence together.
    static std::uint64_t looked_at(std::uint64_t count) { return count * (count + 1) / 2; }
    static std::uint64_t beyond(std::uint64_t count, std::uint64_t near) {
        return count > near ? looked_at(count - near) : 0;
    }
};

[[nodiscard]] double step_microseconds(const EngineParameters& parameters, const StepLoad& load);

}  // namespace sluice::sim
