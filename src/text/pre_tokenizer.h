#pragma once

// DeepSeek V3's pre-tokenizer: cuts text into the pieces that byte-pair merges never cross.
//
// The reference runs three regular expressions one after another, each splitting the pieces of the
// one before, gaps kept:
//   a) \p{N}{1,3}
//   b) [\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+
//   c) [!-/:-@\[-`{-~][A-Za-z]+ | [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+ | ?[\p{P}\p{S}]+[\r\n]*
//      | \s*[\r\n]+ | \s+(?!\S) | \s+
// Written out by hand because a regex library brings its own Unicode version, its own idea of \s and
// time that is not linear. Here a) and b) cut segments and c) runs inside one segment, so its
// look-ahead ends at the segment's end, as in the reference.
//
// Invariant: the pieces, joined, are the text, whatever bytes it holds. A byte that is not UTF-8
// counts as a character of class "other".

#include <cstddef>
#include <string_view>

namespace sluice::text {

/// Yields the pieces of one text in order. Time is linear in the text's length.
class PieceReader {
public:
    explicit PieceReader(std::string_view text) : text_(text) {}

    /// The next piece, never empty; an empty view at the end of the text.
    [[nodiscard]] std::string_view next();

private:
    void open_segment();
    std::size_t number_end() const;
    std::size_t match_end(std::size_t begin) const;
    std::size_t ascii_word_end(std::size_t begin) const;
    std::size_t letters_end(std::size_t begin) const;
    std::size_t punctuation_end(std::size_t begin) const;
    std::size_t space_end(std::size_t begin) const;

    std::string_view text_;
    std::size_t position_ = 0;     ///< Start of the next piece.
    std::size_t segment_end_ = 0;  ///< Stage c) sees nothing at or after this.
};

}  // namespace sluice::text
