#pragma once

// Finds the first of several strings to be complete in a byte stream, one byte at a time.
//
// Each pattern keeps its own Knuth-Morris-Pratt state, so the work is linear in the stream whatever
// it holds, and the state says at every byte how much of the stream's end may still become a match:
// that much, and no more, has to be held back.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::protocol {

class PatternScanner {
public:
    enum class Anchor : std::uint8_t {
        kAnywhere,
        kStart,  ///< Matches only with nothing held before it, and until `leave_start`.
    };

    /// Patterns must not be empty. The index counts up from 0 in the order of adding.
    std::size_t add(std::string_view pattern, Anchor anchor = Anchor::kAnywhere);

    /// Takes the next byte. If patterns end here, gives the longest's index, and among equals the one
    /// added first; call `reset` before the next byte.
    [[nodiscard]] std::optional<std::size_t> step(char byte);

    /// How many of the last bytes, at most all since `reset`, may be the beginning of a match.
    [[nodiscard]] std::size_t held() const { return held_; }

    /// Whether `byte` can begin a match. Where nothing is held, other bytes may be skipped.
    [[nodiscard]] bool can_begin(char byte) const {
        return begins_[static_cast<unsigned char>(byte)];
    }

    /// Forgets all partial matches.
    void reset();

    /// No kStart pattern matches from now on.
    void leave_start();

    [[nodiscard]] std::size_t length(std::size_t index) const {
        return patterns_[index].text.size();
    }

private:
    struct Pattern {
        std::string text;
        std::vector<std::uint32_t> failure;  ///< Longest border of the first i + 1 bytes.
        Anchor anchor;
        std::uint32_t matched = 0;  ///< Length of the partial match.
    };

    static void advance(Pattern& pattern, char byte);
    [[nodiscard]] bool counts(const Pattern& pattern) const;
    void index_first_bytes();

    std::vector<Pattern> patterns_;
    std::array<bool, 256> begins_{};
    std::size_t held_ = 0;
    bool at_start_ = true;
};

}  // namespace sluice::protocol
