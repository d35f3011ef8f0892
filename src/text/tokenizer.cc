#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/hash.h"
#include "base/limits.h"
#include "text/added_token_matcher.h"
#include "text/byte_alphabet.h"
#include "text/byte_pair_encoder.h"
#include "text/piece_table.h"
#include "text/pre_tokenizer.h"
#include "text/utf8.h"

namespace sluice::text {

struct Tokenizer::State {
    enum class Kind : std::uint8_t {
        kHole,
        kNormal,
        kWhole,  ///< Normal, and what merging its own bytes gives: such a piece needs no merging.
        kAdded,
    };

    State(std::size_t size, std::size_t merges)
        : bytes(size), kinds(size, Kind::kHole), pieces(size), merger(merges) {}

    [[nodiscard]] bool contains(TokenId id) const {
        return id >= 0 && static_cast<std::size_t>(id) < kinds.size();
    }
    [[nodiscard]] Kind kind(TokenId id) const { return kinds[static_cast<std::size_t>(id)]; }

    std::vector<std::string> bytes;  ///< By id.
    std::vector<Kind> kinds;         ///< By id.
    PieceTable pieces;               ///< Normal tokens only: plain text can't find an added one.
    BytePairEncoder merger;
    AddedTokenMatcher added;
    std::size_t longest = 0;  ///< Bytes.
    std::optional<TokenId> bos, eos, pad;
    std::string digest;
};

/// Fills a State step by step; each step trusts only what the ones before have checked.
class Tokenizer::Builder {
public:
    Builder(const VocabularyData& data, std::size_t size)
        : data_(data), state_(std::make_shared<State>(size, data.merges.size())) {}

    Result<std::shared_ptr<const State>> build() {
        for (const auto step :
             {&Builder::add_added_tokens, &Builder::add_tokens, &Builder::set_bytes,
              &Builder::add_merges, &Builder::set_named_tokens}) {
            if (auto done = (this->*step)(); !done) return std::unexpected(done.error());
        }
        measure_tokens();
        state_->digest = digest();
        return state_;
    }

private:
    using Kind = State::Kind;

    Result<void> add_added_tokens();
    Result<void> add_tokens();
    Result<void> set_bytes();
    Result<void> add_merges();
    Result<TokenId> merge_part(std::string_view spelling) const;
    Result<void> add_merge(const std::string& merge);
    Result<void> set_named_tokens();
    void measure_tokens();
    [[nodiscard]] std::string digest() const;

    const VocabularyData& data_;
    std::shared_ptr<State> state_;
    std::vector<TokenId> merged_;  ///< left, right of each merge, for the digest.
};

Result<void> Tokenizer::Builder::add_added_tokens() {
    for (std::size_t i = 0; i < data_.added.size(); ++i) {
        const auto& [id, content, special] = data_.added[i];
        const auto fail = [i](std::string message) {
            return std::unexpected(
                Error::invalid(std::move(message), fmt::format("added_tokens[{}]", i)));
        };
        if (content.empty()) return fail("the content is empty");
        if (content.size() > limits::kAddedTokenBytes) {
            return fail(fmt::format("the content has {} bytes; at most {} are allowed",
                                    content.size(), limits::kAddedTokenBytes));
        }
        if (!is_valid_utf8(content)) return fail("the content is not valid UTF-8");
        if (state_->kind(id) != Kind::kHole) {
            return fail(fmt::format("id {} is given to another added token too", id));
        }
        if (!state_->added.add(content, id)) {
            return fail(fmt::format("{} is an added token already", quoted_spelling(content)));
        }
        state_->kinds[static_cast<std::size_t>(id)] = Kind::kAdded;
        state_->bytes[static_cast<std::size_t>(id)] = content;
    }
    return {};
}

Result<void> Tokenizer::Builder::add_tokens() {
    for (std::size_t i = 0; i < data_.tokens.size(); ++i) {
        const std::string& spelling = data_.tokens[i];
        if (spelling.empty()) continue;
        const auto id = static_cast<TokenId>(i);
        const auto fail = [i](std::string message) {
            return std::unexpected(
                Error::invalid(std::move(message), fmt::format("tokens[{}]", i)));
        };
        const auto added = state_->added.id_of(spelling);
        if (added && *added != id) {
            return fail(
                fmt::format("{} is an added token with id {}", quoted_spelling(spelling), *added));
        }
        if (added) continue;
        if (state_->kinds[i] == Kind::kAdded) {
            return fail(fmt::format("id {} is both {} and the added token {}", id,
                                    quoted_spelling(spelling), quoted_spelling(state_->bytes[i])));
        }
        auto bytes = bytes_of_spelling(spelling);
        if (!bytes) {
            return fail(fmt::format("{} has a character outside the byte alphabet",
                                    quoted_spelling(spelling)));
        }
        state_->bytes[i] = std::move(*bytes);
        state_->kinds[i] = Kind::kNormal;
        const TokenId other = state_->pieces.add(state_->bytes, id);
        if (other != PieceTable::kNone) {
            return fail(fmt::format("{} is token {} already", quoted_spelling(spelling), other));
        }
    }
    return {};
}

Result<void> Tokenizer::Builder::set_bytes() {
    for (int byte = 0; byte < 256; ++byte) {
        const std::string piece(1, static_cast<char>(byte));
        const TokenId id = state_->pieces.find(state_->bytes, piece);
        if (id == PieceTable::kNone) {
            return std::unexpected(Error::invalid(
                fmt::format("no token stands for the byte 0x{:02X}", byte), "tokens"));
        }
        state_->merger.set_byte(static_cast<std::uint8_t>(byte), id);
    }
    return {};
}

Result<void> Tokenizer::Builder::add_merges() {
    merged_.reserve(2 * data_.merges.size());
    for (std::size_t i = 0; i < data_.merges.size(); ++i) {
        if (auto added = add_merge(data_.merges[i]); !added) {
            return std::unexpected(added.error().within(fmt::format("merges[{}]", i)));
        }
    }
    return {};
}

Result<TokenId> Tokenizer::Builder::merge_part(std::string_view spelling) const {
    const auto bytes = bytes_of_spelling(spelling);
    const TokenId id = bytes ? state_->pieces.find(state_->bytes, *bytes) : PieceTable::kNone;
    if (id == PieceTable::kNone) {
        return std::unexpected(Error::invalid(
            fmt::format("{} is not a token that merges can use", quoted_spelling(spelling))));
    }
    return id;
}

Result<void> Tokenizer::Builder::add_merge(const std::string& merge) {
    const std::size_t space = merge.find(' ');
    if (space == std::string::npos) {
        return std::unexpected(Error::invalid(
            fmt::format("{} is not two tokens with a space between", quoted_spelling(merge))));
    }
    const std::string_view left_spelling = std::string_view(merge).substr(0, space);
    const std::string_view right_spelling = std::string_view(merge).substr(space + 1);
    const auto left = merge_part(left_spelling);
    if (!left) return std::unexpected(left.error());
    const auto right = merge_part(right_spelling);
    if (!right) return std::unexpected(right.error());
    const auto result = merge_part(fmt::format("{}{}", left_spelling, right_spelling));
    if (!result) return std::unexpected(result.error());
    if (!state_->merger.add_merge(*left, *right, *result)) {
        return std::unexpected(
            Error::invalid(fmt::format("{} is a merge already", quoted_spelling(merge))));
    }
    merged_.push_back(*left);
    merged_.push_back(*right);
    return {};
}

Result<void> Tokenizer::Builder::set_named_tokens() {
    for (const auto& [name, id] :
         {std::pair("bos", data_.bos), std::pair("eos", data_.eos), std::pair("pad", data_.pad)}) {
        if (id && (!state_->contains(*id) || state_->kind(*id) == Kind::kHole)) {
            return std::unexpected(
                Error::invalid(fmt::format("{} is not the id of a token", *id), name));
        }
    }
    state_->bos = data_.bos;
    state_->eos = data_.eos;
    state_->pad = data_.pad;
    return {};
}

void Tokenizer::Builder::measure_tokens() {
    for (const std::string& bytes : state_->bytes) {
        state_->longest = std::max(state_->longest, bytes.size());
    }
    std::vector<TokenId> ids;
    for (std::size_t i = 0; i < state_->kinds.size(); ++i) {
        if (state_->kinds[i] != Kind::kNormal) continue;
        ids.clear();
        state_->merger.encode(state_->bytes[i], ids);
        if (ids.size() == 1 && ids[0] == static_cast<TokenId>(i)) state_->kinds[i] = Kind::kWhole;
    }
}

std::string Tokenizer::Builder::digest() const {
    Sha256 hash;
    const auto entries = [&](auto wanted) {
        for (std::size_t i = 0; i < state_->kinds.size(); ++i) {
            if (!wanted(state_->kinds[i])) continue;
            hash.update_u64(i).update_u64(state_->bytes[i].size()).update(state_->bytes[i]);
        }
        hash.update_u64(~std::uint64_t{0});
    };
    hash.update("sluice tokenizer 1").update_u64(static_cast<std::uint64_t>(data_.pre_tokenizer));
    entries([](Kind kind) { return kind == Kind::kNormal || kind == Kind::kWhole; });
    entries([](Kind kind) { return kind == Kind::kAdded; });
    for (const TokenId id : merged_) hash.update_u64(static_cast<std::uint64_t>(id));
    return to_hex(hash.finish());
}

Result<Tokenizer> Tokenizer::create(const VocabularyData& data) {
    std::size_t size = data.tokens.size();
    for (std::size_t i = 0; i < data.added.size(); ++i) {
        const TokenId id = data.added[i].id;
        if (id < 0 || static_cast<std::size_t>(id) >= limits::kVocabularyTokens) {
            return std::unexpected(
                Error(ErrorCode::kOutOfRange,
                      fmt::format("id {} is not in 0..{}", id, limits::kVocabularyTokens - 1),
                      fmt::format("added_tokens[{}].id", i)));
        }
        size = std::max(size, static_cast<std::size_t>(id) + 1);
    }
    if (size > limits::kVocabularyTokens) {
        return std::unexpected(
            Error::out_of_range("number of tokens", size, limits::kVocabularyTokens + 1)
                .within("tokens"));
    }
    if (data.merges.size() > limits::kTokenizerMerges) {
        return std::unexpected(Error::out_of_range("number of merges", data.merges.size(),
                                                   limits::kTokenizerMerges + 1)
                                   .within("merges"));
    }
    auto state = Builder(data, size).build();
    if (!state) return std::unexpected(state.error());
    return Tokenizer(std::move(*state));
}

void Tokenizer::encode(std::string_view text, std::vector<TokenId>& out) const {
    PieceReader pieces(text);
    for (auto piece = pieces.next(); !piece.empty(); piece = pieces.next()) {
        const TokenId id = state_->pieces.find(state_->bytes, piece);
        if (id != PieceTable::kNone && state_->kind(id) == State::Kind::kWhole) {
            out.push_back(id);
        } else {
            state_->merger.encode(piece, out);
        }
    }
}

std::vector<TokenId> Tokenizer::encode_with_control(std::string_view text) const {
    std::vector<TokenId> ids;
    std::size_t position = 0;
    while (const auto match = state_->added.find(text, position)) {
        encode(text.substr(position, match->begin - position), ids);
        ids.push_back(match->id);
        position = match->begin + match->length;
    }
    encode(text.substr(position), ids);
    return ids;
}

std::optional<TokenId> Tokenizer::control_id(std::string_view spelling) const {
    return state_->added.id_of(spelling);
}

bool Tokenizer::is_control(TokenId id) const {
    return state_->contains(id) && state_->kind(id) == State::Kind::kAdded;
}

std::string_view Tokenizer::bytes(TokenId id) const {
    if (!state_->contains(id)) return {};
    return state_->bytes[static_cast<std::size_t>(id)];
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
    std::string text;
    for (const TokenId id : ids) text += bytes(id);
    return text;
}

std::size_t Tokenizer::vocabulary_size() const { return state_->kinds.size(); }
std::size_t Tokenizer::longest_token() const { return state_->longest; }
std::optional<TokenId> Tokenizer::bos() const { return state_->bos; }
std::optional<TokenId> Tokenizer::eos() const { return state_->eos; }
std::optional<TokenId> Tokenizer::pad() const { return state_->pad; }
const std::string& Tokenizer::digest() const { return state_->digest; }

}  // namespace sluice::text
