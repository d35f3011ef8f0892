#pragma once

// Krill and its reference outputs, for the engine's tests.

#include <memory>
#include <string>
#include <vector>

#include "engine/model.h"
#include "tests/support/gguf_builder.h"

namespace sluice::engine::krill {

/// One entry of models/krill/reference.json.
struct Reference {
    std::string name;
    std::vector<TokenId> prompt_ids;
    std::vector<TokenId> greedy_ids;
    std::vector<float> logits;      ///< [positions][vocabulary]; empty where none were stored.
    std::vector<float> mtp_logits;  ///< Of the MTP head, [positions - 1][vocabulary]; likewise.

    [[nodiscard]] std::vector<TokenId> all_ids() const;
};

[[nodiscard]] std::vector<Reference> references();
[[nodiscard]] Reference reference(const std::string& name);

/// The model from "krill-f16.gguf" or "krill-q8_0.gguf", loaded once per process.
[[nodiscard]] std::shared_ptr<const Model> model(const std::string& file);

/// Krill in q8_0 without the tensors whose names start with `prefix`, as a temporary file.
[[nodiscard]] sluice::test::TemporaryFile file_without(std::string_view prefix,
                                                       const std::string& name);

/// Krill in q8_0 without its MTP head.
[[nodiscard]] std::shared_ptr<const Model> headless_model();

/// Logits of every position, computed in chunks of `chunk` tokens on `threads` threads.
[[nodiscard]] std::vector<float> all_logits(const std::shared_ptr<const Model>& model,
                                            const std::vector<TokenId>& ids, std::size_t chunk,
                                            std::size_t threads = 1);

/// Logits of the MTP head at every position but the last, `chunk` positions a pass.
[[nodiscard]] std::vector<float> all_mtp_logits(const std::shared_ptr<const Model>& model,
                                                const std::vector<TokenId>& ids, std::size_t chunk);

}  // namespace sluice::engine::krill
