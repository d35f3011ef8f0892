#include "text/added_token_matcher.h"

namespace sluice::text {

bool AddedTokenMatcher::add(std::string_view spelling, TokenId id) {
    std::int32_t node = 0;
    for (const char byte : spelling) {
        std::int32_t next = child(node, byte);
        if (next == kNone) {
            next = static_cast<std::int32_t>(nodes_.size());
            nodes_.push_back({.next_sibling = nodes_[node].first_child, .byte = byte});
            nodes_[node].first_child = next;
        }
        node = next;
    }
    if (nodes_[node].id != kNone) return false;
    nodes_[node].id = id;
    starts_[static_cast<std::uint8_t>(spelling.front())] = true;
    return true;
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::find(std::string_view text,
                                                                std::size_t from) const {
    for (std::size_t begin = from; begin < text.size(); ++begin) {
        if (!starts_[static_cast<std::uint8_t>(text[begin])]) continue;
        std::optional<Match> longest;
        std::int32_t node = 0;
        for (std::size_t at = begin; at < text.size(); ++at) {
            node = child(node, text[at]);
            if (node == kNone) break;
            if (nodes_[node].id != kNone) longest = {begin, at + 1 - begin, nodes_[node].id};
        }
        if (longest) return longest;
    }
    return std::nullopt;
}

std::optional<TokenId> AddedTokenMatcher::id_of(std::string_view spelling) const {
    std::int32_t node = 0;
    for (const char byte : spelling) {
        node = child(node, byte);
        if (node == kNone) return std::nullopt;
    }
    if (nodes_[node].id == kNone) return std::nullopt;
    return nodes_[node].id;
}

std::int32_t AddedTokenMatcher::child(std::int32_t node, char byte) const {
    std::int32_t next = nodes_[node].first_child;
    while (next != kNone && nodes_[next].byte != byte) next = nodes_[next].next_sibling;
    return next;
}

}  // namespace sluice::text
