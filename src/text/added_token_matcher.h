#pragma once

// Finds added tokens in trusted text by their spelling: the leftmost first, of those the longest.
//
// A trie over bytes. Spellings are bounded (limits::kAddedTokenBytes), so a search is linear in the
// text. Immutable once filled.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/sampling_params.h"

namespace sluice::text {

class AddedTokenMatcher {
public:
    struct Match {
        std::size_t begin;
        std::size_t length;
        TokenId id;
    };

    /// False if the spelling is there already. `spelling` must not be empty.
    [[nodiscard]] bool add(std::string_view spelling, TokenId id);

    /// First match that begins at `from` or later.
    [[nodiscard]] std::optional<Match> find(std::string_view text, std::size_t from) const;

    /// The token spelled exactly so.
    [[nodiscard]] std::optional<TokenId> id_of(std::string_view spelling) const;

private:
    static constexpr std::int32_t kNone = -1;

    struct Node {
        std::int32_t first_child = kNone;
        std::int32_t next_sibling = kNone;
        TokenId id = kNone;  ///< Of the spelling that ends here.
        char byte = 0;
    };

    [[nodiscard]] std::int32_t child(std::int32_t node, char byte) const;

    std::vector<Node> nodes_ = {Node{}};
    std::array<bool, 256> starts_{};  ///< Bytes that begin some spelling: most of the text doesn't.
};

}  // namespace sluice::text
