#pragma once

// `sluice bench engine`: how fast the native engine computes prompts and generates, without a server.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/model.h"

namespace sluice::app {

struct BenchEngineOptions {
    std::vector<std::size_t> threads = {1};
    std::size_t prompt = 512;              ///< Tokens of the prompt test.
    std::size_t decode = 128;              ///< Tokens that each sequence generates.
    std::vector<std::size_t> batch = {1};  ///< Sequences that generate together.
    std::size_t repeats = 5;               ///< The median of these counts.
    /// Kinds of speculation for the conversation (bench_conversation.h); none skips it.
    std::vector<std::string> speculation = {};
};

struct BenchEngineRow {
    std::string test;  ///< "prompt", "decode", "ask" or "ask again"
    std::size_t threads = 1;
    std::size_t batch = 1;
    std::size_t tokens = 0;  ///< Per repeat, all sequences together.
    double tokens_per_s = 0.0;
    double slowest = 0.0;  ///< The least and the most of the repeats, in tokens/s.
    double fastest = 0.0;
    /// Of what the machine was measured to do at most, by the median: multiply-adds, f32 and int8 each at
    /// its own peak in the same run, and bytes that a step must read, each repeat beside the speed of
    /// memory right before it. 1 is the machine's limit.
    double multiply_add_share = 0.0;
    double bandwidth_share = 0.0;
    std::string speculation = "off";
    std::uint64_t drafted = 0;  ///< Tokens that were guessed, in all repeats.
    std::uint64_t accepted = 0;

    /// Sets the speeds from those of the repeats.
    void add_repeats(std::vector<double> speeds);
};

/// Runs every combination; `on_row` is called after each.
[[nodiscard]] Result<void> bench_engine(const std::shared_ptr<const engine::Model>& model,
                                        const BenchEngineOptions& options,
                                        const std::function<void(const BenchEngineRow&)>& on_row);

}  // namespace sluice::app
