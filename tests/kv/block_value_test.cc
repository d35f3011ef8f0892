#include "kv/block_value.h"

#include <cstring>

#include "base/limits.h"

namespace sluice::kv {
namespace {

BlockHeader header() {
    return {.key = sha256("key"),
            .parent = sha256("parent"),
            .component = "mla",
            .tokens = 64,
            .producer = sha256("producer"),
            .payload_checksum = {}};
}

std::string encoded(std::string_view payload, const BlockHeader& of = header()) {
    return encode_block(of, payload.size(), [payload](std::span<std::byte> out) {
        std::memcpy(out.data(), payload.data(), payload.size());
    });
}

TEST(BlockValueTest, ComesBackEqual) {
    for (const std::string& payload :
         {std::string(), std::string(1, 'x'), std::string(5000, 'y')}) {
        const std::string value = encoded(payload);
        EXPECT_EQ(block_value_bytes(std::string_view(value).substr(0, kBlockPrefixBytes)),
                  value.size());
        const auto block = decode_block(value);
        ASSERT_TRUE(block.has_value()) << block.error().to_string();
        EXPECT_EQ(block->header.key, header().key);
        EXPECT_EQ(block->header.parent, header().parent);
        EXPECT_EQ(block->header.component, "mla");
        EXPECT_EQ(block->header.tokens, 64U);
        EXPECT_EQ(block->header.producer, header().producer);
        EXPECT_EQ(block->header.payload_checksum,
                  xxh3_128(std::as_bytes(std::span(payload.data(), payload.size()))));
        EXPECT_EQ(std::string(reinterpret_cast<const char*>(block->payload.data()),
                              block->payload.size()),
                  payload);
    }
}

TEST(BlockValueTest, EveryFlippedBitIsNoticed) {
    const std::string value = encoded("the payload");
    for (std::size_t bit = 0; bit < 8 * value.size(); ++bit) {
        std::string broken = value;
        broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ (1 << (bit % 8)));
        EXPECT_FALSE(decode_block(broken).has_value()) << bit;
    }
}

TEST(BlockValueTest, TheHeaderIsReadWithoutItsPayload) {
    std::string value = encoded("the payload");
    const auto decoded = decode_block(value);
    value[value.size() - 20] ^= 1;  // In the payload.
    EXPECT_EQ(*read_block_header(value), decoded->header);
    EXPECT_FALSE(read_block_header(value.substr(1)).has_value());
    EXPECT_FALSE(read_block_header(value + "x").has_value());
    EXPECT_FALSE(read_block_header("").has_value());
}

TEST(BlockValueTest, EveryOtherLengthIsNoticed) {
    const std::string value = encoded("the payload");
    for (std::size_t bytes = 0; bytes < value.size(); ++bytes)
        EXPECT_FALSE(decode_block(std::string_view(value).substr(0, bytes)).has_value()) << bytes;
    EXPECT_FALSE(decode_block(value + "x").has_value());
}

TEST(BlockValueTest, AnotherVersionIsToldApartFromDamage) {
    std::string value = encoded("x");
    value[8] = 2;
    ASSERT_FALSE(decode_block(value).has_value());
    EXPECT_EQ(decode_block(value).error().code(), ErrorCode::kUnsupported);
    value[0] = 'X';
    EXPECT_EQ(block_value_bytes(value).error().code(), ErrorCode::kCorrupt);
}

TEST(BlockValueTest, ALengthBeyondTheLimitIsRefusedBeforeItIsRead) {
    std::string prefix = encoded("x").substr(0, kBlockPrefixBytes);
    const std::uint64_t beyond = limits::kKvBlockBytes + 1;
    std::memcpy(prefix.data() + 16, &beyond, sizeof beyond);
    EXPECT_EQ(block_value_bytes(prefix).error().code(), ErrorCode::kCorrupt);
    const std::uint64_t all = ~std::uint64_t{0};
    std::memcpy(prefix.data() + 16, &all, sizeof all);
    EXPECT_EQ(block_value_bytes(prefix).error().code(), ErrorCode::kCorrupt);
}

// Values outlive processes and travel between them, so a change of the format must be seen.
TEST(BlockValueTest, TheFormatIsPinned) {
    EXPECT_EQ(to_hex(sha256(encoded("payload"))),
              "2f647272e3265254b67ec2093b7905fa1f181278db543040a07a779cae985d2a");
}

TEST(BlockValueTest, TheFirstBytesAreEnoughForTheHeader) {
    BlockHeader longest = header();
    longest.component = std::string(kComponentBytes, 'c');
    const std::string value = encoded(std::string(5000, 'y'), longest);
    const auto start = read_block_start(std::string_view(value).substr(0, kBlockStartBytes));
    ASSERT_TRUE(start.has_value()) << start.error().to_string();
    EXPECT_EQ(*start, decode_block(value)->header);
    for (std::size_t bytes = 0; bytes < 200; ++bytes)
        EXPECT_FALSE(read_block_start(std::string_view(value).substr(0, bytes)).has_value());
}

}  // namespace
}  // namespace sluice::kv
