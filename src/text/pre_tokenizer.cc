#include "text/pre_tokenizer.h"

#include "text/unicode_classes.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

struct Character {
    char32_t code_point;
    std::uint8_t length;
    UnicodeClass unicode_class;

    bool is(UnicodeClass other) const { return unicode_class == other; }
};

Character character_at(std::string_view text, std::size_t at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) return {byte, 1, unicode_class(byte)};
    const Utf8Character decoded = decode_utf8(text.substr(at, 4));
    const bool valid = decoded.status == Utf8Status::kValid;
    return {decoded.code_point, decoded.length,
            valid ? unicode_class(decoded.code_point) : UnicodeClass::kOther};
}

/// The reference's range for Chinese and kana: not the whole script, and with kana marks.
bool is_cjk(char32_t code_point) {
    return (code_point >= 0x4E00 && code_point <= 0x9FA5) ||
           (code_point >= 0x3040 && code_point <= 0x30FF);
}

bool is_ascii_letter(char byte) {
    const char lower = static_cast<char>(byte | 0x20);
    return lower >= 'a' && lower <= 'z';
}

/// Neither a number nor Chinese, which needs no table to tell.
bool is_ascii_but_no_digit(char byte) {
    return static_cast<unsigned char>(byte) < 0x80 && (byte < '0' || byte > '9');
}

bool is_newline(char byte) { return byte == '\r' || byte == '\n'; }

}  // namespace

std::string_view PieceReader::next() {
    if (position_ == text_.size()) return {};
    const std::size_t begin = position_;
    if (position_ == segment_end_) open_segment();
    // A number is whole already: stage c) matches nothing in it.
    if (character_at(text_, begin).is(UnicodeClass::kNumber)) {
        position_ = segment_end_;
        return text_.substr(begin, segment_end_ - begin);
    }

    const std::size_t end = match_end(begin);
    if (end != begin) {
        position_ = end;
        return text_.substr(begin, end - begin);
    }
    // Characters that nothing matches form one piece up to the next match.
    do {
        position_ += character_at(text_, position_).length;
    } while (position_ < segment_end_ && match_end(position_) == position_);
    return text_.substr(begin, position_ - begin);
}

void PieceReader::open_segment() {
    const Character first = character_at(text_, position_);
    if (first.is(UnicodeClass::kNumber)) {
        segment_end_ = number_end();
        return;
    }
    const bool cjk = is_cjk(first.code_point);
    std::size_t end = position_ + first.length;
    while (end < text_.size()) {
        if (!cjk && is_ascii_but_no_digit(text_[end])) {
            ++end;
            continue;
        }
        const Character character = character_at(text_, end);
        if (character.is(UnicodeClass::kNumber) || is_cjk(character.code_point) != cjk) break;
        end += character.length;
    }
    segment_end_ = end;
}

std::size_t PieceReader::number_end() const {
    std::size_t end = position_;
    for (int digits = 0; digits < 3 && end < text_.size(); ++digits) {
        const Character character = character_at(text_, end);
        if (!character.is(UnicodeClass::kNumber)) break;
        end += character.length;
    }
    return end;
}

/// End of the match of stage c) that starts at `begin`, or `begin` if none does. The order of the
/// tests is the order of the alternatives: the first that matches wins, however short.
std::size_t PieceReader::match_end(std::size_t begin) const {
    const Character first = character_at(text_, begin);
    switch (first.unicode_class) {
        case UnicodeClass::kLetterOrMark: return letters_end(begin);
        case UnicodeClass::kPunctuationOrSymbol: {
            const std::size_t word_end = ascii_word_end(begin);
            return word_end != begin ? word_end : punctuation_end(begin);
        }
        default: break;
    }

    const std::size_t second = begin + first.length;
    const bool has_second = second < segment_end_;
    if (has_second && !is_newline(text_[begin]) &&
        character_at(text_, second).is(UnicodeClass::kLetterOrMark)) {
        return letters_end(second);
    }
    if (has_second && text_[begin] == ' ' &&
        character_at(text_, second).is(UnicodeClass::kPunctuationOrSymbol)) {
        return punctuation_end(second);
    }
    return first.is(UnicodeClass::kSpace) ? space_end(begin) : begin;
}

/// [!-/:-@\[-`{-~][A-Za-z]+, where `begin` is known to be punctuation or a symbol.
std::size_t PieceReader::ascii_word_end(std::size_t begin) const {
    if (static_cast<unsigned char>(text_[begin]) >= 0x80) return begin;
    std::size_t end = begin + 1;
    while (end < segment_end_ && is_ascii_letter(text_[end])) ++end;
    return end == begin + 1 ? begin : end;
}

/// [\p{L}\p{M}]+
std::size_t PieceReader::letters_end(std::size_t begin) const {
    std::size_t end = begin;
    while (end < segment_end_) {
        if (is_ascii_letter(text_[end])) {
            ++end;
            continue;
        }
        const Character character = character_at(text_, end);
        if (!character.is(UnicodeClass::kLetterOrMark)) break;
        end += character.length;
    }
    return end;
}

/// [\p{P}\p{S}]+[\r\n]*
std::size_t PieceReader::punctuation_end(std::size_t begin) const {
    std::size_t end = begin;
    while (end < segment_end_) {
        const Character character = character_at(text_, end);
        if (!character.is(UnicodeClass::kPunctuationOrSymbol)) break;
        end += character.length;
    }
    while (end < segment_end_ && is_newline(text_[end])) ++end;
    return end;
}

/// \s*[\r\n]+ | \s+(?!\S) | \s+
std::size_t PieceReader::space_end(std::size_t begin) const {
    std::size_t end = begin;
    std::size_t last = begin;         // Start of the run's last character.
    std::size_t newline_end = begin;  // End of the run's last line break.
    while (end < segment_end_) {
        const Character character = character_at(text_, end);
        if (!character.is(UnicodeClass::kSpace)) break;
        last = end;
        end += character.length;
        if (is_newline(text_[last])) newline_end = end;
    }
    if (newline_end != begin) return newline_end;
    // Before other text the last space is left for the word after it.
    return end == segment_end_ || last == begin ? end : last;
}

}  // namespace sluice::text
