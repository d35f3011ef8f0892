#pragma once

// Text to token ids and back, exactly as the model was trained to see it.
//
// Two doors lead in, because an added token steers the model. `encode` is for what users write: no
// spelling of an added token ever becomes its id there, and no merge can build one (create refuses
// such a vocabulary). `encode_with_control` is for templates we wrote ourselves.
//
// Bytes survive: decode(encode(x)) == x for any bytes x, valid UTF-8 or not. Time is O(n log n) in
// the text for every input. Texts must be shorter than 2 GiB.
//
// Immutable, safe to share between threads, cheap to copy (copies share one vocabulary).

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/sampling_params.h"
#include "text/vocabulary.h"

namespace sluice::text {

class Tokenizer {
public:
    /// Checks everything `data` claims. The error's place is an entry, such as "merges[7]".
    [[nodiscard]] static Result<Tokenizer> create(const VocabularyData& data);

    /// Appends the ids of untrusted text; never the id of an added token.
    void encode(std::string_view text, std::vector<TokenId>& out) const;

    /// Ids of trusted text: added tokens are found leftmost and longest, the rest is plain.
    [[nodiscard]] std::vector<TokenId> encode_with_control(std::string_view text) const;

    /// The added token spelled exactly so.
    [[nodiscard]] std::optional<TokenId> control_id(std::string_view spelling) const;

    /// Whether `id` is an added token, special or not.
    [[nodiscard]] bool is_control(TokenId id) const;

    /// The bytes a token stands for, maybe part of a character; empty if there is no such token.
    /// Lives as long as any copy of this tokenizer.
    [[nodiscard]] std::string_view bytes(TokenId id) const;

    /// The bytes of all tokens, joined; ids that are no tokens add nothing.
    [[nodiscard]] std::string decode(std::span<const TokenId> ids) const;

    /// One more than the highest id. Ids below may be holes.
    [[nodiscard]] std::size_t vocabulary_size() const;

    /// Bytes of the longest token. A text of n bytes has at least n / longest tokens, so a text that
    /// can't fit a context can be refused before it is encoded.
    [[nodiscard]] std::size_t longest_token() const;

    [[nodiscard]] std::optional<TokenId> bos() const;
    [[nodiscard]] std::optional<TokenId> eos() const;
    [[nodiscard]] std::optional<TokenId> pad() const;

    /// SHA-256 in hexadecimal over all that decides ids: equal digests give equal ids, whichever
    /// file the vocabulary came from.
    [[nodiscard]] const std::string& digest() const;

private:
    struct State;
    class Builder;
    explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}

    std::shared_ptr<const State> state_;
};

}  // namespace sluice::text
