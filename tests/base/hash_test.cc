#include "base/hash.h"

namespace sluice {
namespace {

// FIPS 180-2, appendix B.1.
TEST(HashTest, Sha256OfAbcIsTheStandardsExample) {
    EXPECT_EQ(to_hex(sha256("abc")),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(HashTest, PiecesHashLikeTheWhole) {
    EXPECT_EQ(Sha256().update("a").update("bc").finish(), sha256("abc"));
}

TEST(HashTest, NumbersHashLittleEndFirst) {
    using namespace std::string_view_literals;
    EXPECT_EQ(Sha256().update_u64(0x0102).finish(), sha256("\x02\x01\0\0\0\0\0\0"sv));
}

TEST(HashTest, HexadecimalKeepsItsZerosAndItsLastDigits) {
    std::string text = "x";
    append_hex(text, 0x0a1b, 8);
    append_hex(text, 0xfedcba9876543210);
    append_hex(text, 0x1234, 2);
    EXPECT_EQ(text, "x00000a1bfedcba987654321034");
}

// The empty input's value from the xxHash project's own sanity checks.
TEST(HashTest, Xxh3OfNothingIsTheKnownValue) {
    EXPECT_EQ(xxh3_128({}), (Xxh128{.low = 0x6001c324468d497fULL, .high = 0x99aa06d3014798d8ULL}));
}

}  // namespace
}  // namespace sluice
