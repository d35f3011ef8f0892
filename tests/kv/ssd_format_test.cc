#include "kv/ssd_format.h"

#include <gtest/gtest.h>

#include "kv/byte_codec.h"

namespace sluice::kv {
namespace {

constexpr std::uint64_t kNonce = 0x1122334455667788;

std::string entry(std::string_view name, std::string_view value, std::uint64_t nonce = kNonce) {
    const auto checksum = xxh3_128(std::as_bytes(std::span(value.data(), value.size())));
    std::string bytes = encode_entry_header({.nonce = nonce,
                                             .sequence = 7,
                                             .expires_ms = 99,
                                             .slot = 3,
                                             .value_bytes = value.size(),
                                             .value_checksum = checksum,
                                             .name = name});
    bytes += value;
    bytes.resize(ssd_entry_bytes(name.size(), value.size()));
    return bytes;
}

std::vector<SsdRecord> two_records() {
    return {{.offset = 4096,
             .value_bytes = 5000,
             .sequence = 1,
             .expires_ms = kSsdNever,
             .slot = 0,
             .parent = 0x8877665544332211,
             .name = "first"},
            {.offset = 4096 + 8192,
             .value_bytes = 0,
             .sequence = 2,
             .expires_ms = 12,
             .slot = 2,
             .name = ""}};
}

struct Footer {
    std::string table;
    std::string last;
    std::uint64_t file_bytes = 0;
};

Footer footer_of(std::span<const SsdRecord> records, std::uint64_t offset) {
    const std::string bytes = encode_footer(records, offset, kNonce);
    return {.table = bytes.substr(0, bytes.size() - kSsdSectorBytes),
            .last = bytes.substr(bytes.size() - kSsdSectorBytes),
            .file_bytes = offset + bytes.size()};
}

Result<std::vector<SsdRecord>> read_back(const Footer& footer) {
    const auto trailer = decode_trailer(footer.last, kNonce, footer.file_bytes);
    if (!trailer) return std::unexpected(trailer.error());
    return decode_footer(footer.table.substr(0, trailer->footer_bytes), *trailer);
}

TEST(SsdFormatTest, ASegmentSaysWhatItIs) {
    const SsdSegmentHeader header{.retention = Retention::kAgent, .number = 42, .nonce = kNonce};
    const std::string sector = encode_segment_header(header);
    ASSERT_EQ(sector.size(), kSsdSectorBytes);
    EXPECT_EQ(*decode_segment_header(sector), header);
    EXPECT_FALSE(decode_segment_header(sector.substr(1)));
    EXPECT_FALSE(decode_segment_header(std::string(kSsdSectorBytes, '\0')));
    std::string other_version = sector;
    other_version[8] = 2;
    EXPECT_EQ(decode_segment_header(other_version).error().code(), ErrorCode::kUnsupported);
}

TEST(SsdFormatTest, AnEntryIsItsNameItsValueAndItsSegment) {
    const std::string value(10'000, 'v');
    const std::string bytes = entry("name", value);
    EXPECT_EQ(*decode_entry(bytes, kNonce, "name"), value);
    EXPECT_EQ(decode_entry_header(bytes, kNonce)->expires_ms, 99);
    EXPECT_FALSE(decode_entry(bytes, kNonce, "eman"));
    EXPECT_FALSE(decode_entry(bytes, kNonce + 1, "name"));
    EXPECT_FALSE(decode_entry(bytes.substr(0, 8192), kNonce, "name"));
}

TEST(SsdFormatTest, EveryBitOfAnEntryIsChecked) {
    const std::string value(300, 'v');
    const std::string bytes = entry("name", value);
    // What fills up to the value and to the sector says nothing.
    const std::size_t head = 72 + 4;
    const std::size_t begin = ssd_value_offset(4);
    for (std::size_t i = 0; i < begin + value.size(); ++i) {
        if (i >= head && i < begin) continue;
        for (int bit = 0; bit < 8; ++bit) {
            std::string changed = bytes;
            changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
            EXPECT_FALSE(decode_entry(changed, kNonce, "name")) << "byte " << i;
        }
    }
}

TEST(SsdFormatTest, AFooterNamesEveryEntry) {
    const auto records = two_records();
    EXPECT_EQ(*read_back(footer_of(records, 4096 + 8192 + 4096)), records);
    EXPECT_TRUE(read_back(footer_of({}, 4096))->empty());
}

// As format 1 wrote it: nothing says what an entry follows.
TEST(SsdFormatTest, AFooterOfFormat1IsReadWithoutParents) {
    auto records = two_records();
    std::string table;
    ByteWriter writer(table);
    for (SsdRecord& record : records) {
        writer.number(record.offset);
        writer.number(record.value_bytes);
        writer.number(record.sequence);
        writer.number(static_cast<std::uint64_t>(record.expires_ms));
        writer.number(record.slot);
        writer.number(static_cast<std::uint32_t>(record.name.size()));
        writer.text(record.name);
        record.parent = kSsdNoKin;
    }
    const std::uint64_t offset = 4096 + 8192 + 4096;
    std::string last;
    ByteWriter trailer(last);
    trailer.text("SLUICEFT");
    trailer.number(std::uint32_t{1});
    trailer.number(static_cast<std::uint32_t>(records.size()));
    trailer.number(offset);
    trailer.number(std::uint64_t{table.size()});
    trailer.number(kNonce);
    trailer.checksum(checksum_of(table));
    trailer.checksum(checksum_of(last));
    last.resize(kSsdSectorBytes);
    EXPECT_EQ(*read_back({.table = table, .last = last, .file_bytes = offset + 2 * 4096}), records);
}

TEST(SsdFormatTest, AFooterOfAnotherSegmentOrLengthIsNone) {
    const Footer footer = footer_of(two_records(), 4096 + 8192 + 4096);
    EXPECT_FALSE(decode_trailer(footer.last, kNonce + 1, footer.file_bytes));
    EXPECT_FALSE(decode_trailer(footer.last, kNonce, footer.file_bytes + 4096));
    EXPECT_FALSE(decode_trailer(footer.last.substr(1), kNonce, footer.file_bytes));
}

TEST(SsdFormatTest, EveryBitOfAFooterIsChecked) {
    const Footer whole = footer_of(two_records(), 4096 + 8192 + 4096);
    const std::size_t table_bytes = 2 * kSsdRecordBytes + 5;
    for (std::size_t i = 0; i < table_bytes; ++i) {
        Footer changed = whole;
        changed.table[i] = static_cast<char>(changed.table[i] ^ 4);
        EXPECT_FALSE(read_back(changed)) << "byte " << i;
    }
    for (std::size_t i = 0; i < 72; ++i) {
        Footer changed = whole;
        changed.last[i] = static_cast<char>(changed.last[i] ^ 4);
        EXPECT_FALSE(read_back(changed)) << "byte " << i;
    }
}

TEST(SsdFormatTest, EntriesOutsideOfTheirSegmentOrOverEachOtherAreRefused) {
    const auto refused = [](auto change) {
        auto records = two_records();
        change(records);
        return !read_back(footer_of(records, 4096 + 8192 + 4096)).has_value();
    };
    EXPECT_FALSE(refused([](auto&) {}));
    EXPECT_TRUE(refused([](auto& records) { records[0].offset = 0; }));
    EXPECT_TRUE(refused([](auto& records) { records[0].offset = 4097; }));
    EXPECT_TRUE(refused([](auto& records) { records[0].value_bytes = 8192; }));
    EXPECT_TRUE(refused([](auto& records) { records[1].offset = 8192; }));
    EXPECT_TRUE(refused([](auto& records) { records[1].value_bytes = 5000; }));
    EXPECT_TRUE(refused([](auto& records) { records[1].value_bytes = UINT64_MAX; }));
    EXPECT_TRUE(refused([](auto& records) { records[1].slot = 0; }));
    EXPECT_TRUE(refused([](auto& records) { records[1].slot = kSsdSegmentEntries; }));
}

}  // namespace
}  // namespace sluice::kv
