#pragma once

// A vocabulary as plain data, before anyone has checked that it makes a tokenizer.
//
// It arrives from a tokenizer.json or from the metadata of a GGUF file; both end in this one
// structure, so a model gives equal ids whichever file it came with. Tokenizer::create checks it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/sampling_params.h"

namespace sluice::text {

/// A token that merges never build: it is found by its spelling, and only in trusted text.
struct AddedToken {
    TokenId id = 0;
    std::string content;
    bool special = false;  ///< Control in the file's own words; decides no id.
    bool operator==(const AddedToken&) const = default;
};

enum class PreTokenizer : std::uint8_t { kDeepSeekV3 };

struct VocabularyData {
    std::vector<std::string>
        tokens;  ///< By id, in GPT-2's byte alphabet; empty where there is none.
    std::vector<std::string> merges;  ///< "left right" by rank, in the byte alphabet.
    std::vector<AddedToken> added;    ///< May repeat an entry of `tokens`, then literally.
    PreTokenizer pre_tokenizer = PreTokenizer::kDeepSeekV3;
    std::optional<TokenId> bos, eos, pad;
};

/// The tokenizer metadata of a GGUF file, as its keys hold it.
struct GgufVocabulary {
    std::string model;                      ///< tokenizer.ggml.model
    std::string pre;                        ///< tokenizer.ggml.pre
    std::vector<std::string> tokens;        ///< tokenizer.ggml.tokens
    std::vector<std::string> merges;        ///< tokenizer.ggml.merges
    std::vector<std::int32_t> token_types;  ///< tokenizer.ggml.token_type
    std::optional<TokenId> bos, eos, pad;   ///< tokenizer.ggml.{bos,eos,padding}_token_id
};

/// Tells added tokens from normal ones by their type. Error with the key's name as its place.
[[nodiscard]] Result<VocabularyData> vocabulary_from_gguf(GgufVocabulary gguf);

/// A spelling for an error message: quoted, cut, control characters and broken bytes replaced.
[[nodiscard]] std::string quoted_spelling(std::string_view spelling);

}  // namespace sluice::text
