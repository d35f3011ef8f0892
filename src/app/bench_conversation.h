#pragma once

// The conversation of `sluice bench engine --speculation`: a question, another one, and the first one
// again. The first answer is new to everybody, so it shows what the MTP head is worth; the last one
// stood there before, so it shows look-up. What is timed is decoding, one sequence at a time.

#include <filesystem>

#include "app/bench_engine.h"

namespace sluice::app {

/// Token ids of the two questions, each as the first turn of a conversation of its own: an opening
/// token, and the same form that later turns have behind it.
struct BenchQuestions {
    std::vector<TokenId> first;
    std::vector<TokenId> second;
};

/// In the dialect of the model at `path`. Fails if it has no tokenizer or no dialect.
[[nodiscard]] Result<BenchQuestions> bench_questions(const std::filesystem::path& path,
                                                     const engine::Model& model);

/// Rows "ask" and "ask again" for every number of threads and every kind of speculation.
[[nodiscard]] Result<void> bench_conversation(
    const std::shared_ptr<const engine::Model>& model, const BenchQuestions& questions,
    const BenchEngineOptions& options, const std::function<void(const BenchEngineRow&)>& on_row);

}  // namespace sluice::app
