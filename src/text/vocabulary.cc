#include "text/vocabulary.h"

#include <fmt/format.h>

#include <utility>

#include "text/utf8.h"

namespace sluice::text {
namespace {

// Values of tokenizer.ggml.token_type (the GGUF specification).
constexpr std::int32_t kNormal = 1;
constexpr std::int32_t kControl = 3;
constexpr std::int32_t kUserDefined = 4;
constexpr std::int32_t kUnused = 5;

constexpr std::size_t kQuotedBytesMax = 48;

}  // namespace

std::string quoted_spelling(std::string_view spelling) {
    std::string text = replace_invalid_utf8(spelling.substr(0, kQuotedBytesMax));
    for (char& byte : text) {
        if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F) byte = '?';
    }
    return fmt::format("\"{}{}\"", text, spelling.size() > kQuotedBytesMax ? "..." : "");
}

Result<VocabularyData> vocabulary_from_gguf(GgufVocabulary gguf) {
    if (gguf.model != "gpt2") {
        return std::unexpected(Error::unsupported(
            fmt::format("tokenizer model {} is not supported; only \"gpt2\" (byte-level BPE) is",
                        quoted_spelling(gguf.model)),
            "tokenizer.ggml.model"));
    }
    if (gguf.pre != "deepseek-v3") {
        return std::unexpected(Error::unsupported(
            fmt::format("pre-tokenizer {} is not supported; only \"deepseek-v3\" is",
                        quoted_spelling(gguf.pre)),
            "tokenizer.ggml.pre"));
    }
    if (gguf.token_types.size() != gguf.tokens.size()) {
        return std::unexpected(
            Error::invalid(fmt::format("there are {} token types for {} tokens",
                                       gguf.token_types.size(), gguf.tokens.size()),
                           "tokenizer.ggml.token_type"));
    }

    VocabularyData data{.tokens = std::move(gguf.tokens),
                        .merges = std::move(gguf.merges),
                        .added = {},
                        .bos = gguf.bos,
                        .eos = gguf.eos,
                        .pad = gguf.pad};
    for (std::size_t id = 0; id < data.tokens.size(); ++id) {
        const std::int32_t type = gguf.token_types[id];
        if (type == kNormal) continue;
        // Converters fill ids that the model has and the tokenizer lacks with unused tokens.
        if (type == kUnused) {
            data.tokens[id].clear();
        } else if (type == kControl || type == kUserDefined) {
            data.added.push_back({.id = static_cast<TokenId>(id),
                                  .content = std::move(data.tokens[id]),
                                  .special = type == kControl});
            data.tokens[id].clear();
        } else {
            return std::unexpected(
                Error::unsupported(fmt::format("token type {} is not one of byte-level BPE", type),
                                   fmt::format("tokenizer.ggml.token_type[{}]", id)));
        }
    }
    return data;
}

}  // namespace sluice::text
