#include "text/byte_alphabet.h"

#include "text/utf8.h"

namespace sluice::text {
namespace {

TEST(ByteAlphabetTest, EveryByteHasASpellingThatLeadsBackToIt) {
    for (int byte = 0; byte < 256; ++byte) {
        std::string spelling;
        append_utf8(spelling, spelling_of_byte(static_cast<std::uint8_t>(byte)));
        EXPECT_EQ(bytes_of_spelling(spelling), std::string(1, static_cast<char>(byte)));
    }
}

TEST(ByteAlphabetTest, SpaceAndNewlineHaveTheWellKnownLetters) {
    EXPECT_EQ(bytes_of_spelling("Ġthe"), " the");
    EXPECT_EQ(bytes_of_spelling("Ċ"), "\n");
}

TEST(ByteAlphabetTest, ACharacterOutsideTheAlphabetHasNoBytes) {
    for (const char* spelling : {" ", "a b", "\n", "世", "\u00AD", "\u0144", "\xFF", "a\xC3"}) {
        EXPECT_EQ(bytes_of_spelling(spelling), std::nullopt) << spelling;
    }
}

}  // namespace
}  // namespace sluice::text
