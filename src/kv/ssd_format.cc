#include "kv/ssd_format.h"

#include <algorithm>

#include "base/assert.h"
#include "kv/byte_codec.h"

namespace sluice::kv {
namespace {

constexpr std::string_view kSegmentMagic = "SLUICESG";
constexpr std::string_view kEntryMagic = "SLE1";
constexpr std::string_view kFooterMagic = "SLUICEFT";
/// Of first sectors, which format 2 has left as they were.
constexpr std::uint32_t kSegmentVersion = 1;
constexpr std::uint32_t kFooterVersion = 2;
constexpr std::uint32_t kFooterVersionWithoutParents = 1;
constexpr std::size_t kChecksumBytes = 16;
constexpr std::size_t kSegmentHeaderBytes = 8 + 4 + 1 + 8 + 8;
constexpr std::size_t kEntryFixedBytes = 4 + 4 + 8 + 8 + 8 + 8 + 4 + kChecksumBytes;
constexpr std::size_t kTrailerBytes = 8 + 4 + 4 + 8 + 8 + 8 + kChecksumBytes;
/// Values begin here, so that whoever computes with one finds it on a cache line.
constexpr std::size_t kValueAlignment = 64;
/// Nobody's segment is larger: sums of sizes below can't overflow.
constexpr std::uint64_t kSegmentBytesMax = std::uint64_t{1} << 48;

std::unexpected<Error> corrupt(std::string_view what) {
    return std::unexpected(Error::corrupt(std::string(what)));
}

/// Whether the checksum that follows the first `count` bytes is theirs.
bool checked(std::string_view bytes, std::size_t count) {
    return ByteReader(bytes.substr(count)).checksum() == checksum_of(bytes.substr(0, count));
}

void append_checksum(std::string& bytes) {
    const Xxh128 sum = checksum_of(bytes);
    ByteWriter(bytes).checksum(sum);
}

/// Of the fixed part and the name, which the checksum stands between.
Xxh128 entry_checksum(std::string_view fixed, std::string_view name) {
    std::string all(fixed);
    all += name;
    return checksum_of(all);
}

}  // namespace

std::size_t ssd_value_offset(std::size_t name_bytes) {
    const std::size_t head = kEntryFixedBytes + kChecksumBytes + name_bytes;
    return (head + kValueAlignment - 1) / kValueAlignment * kValueAlignment;
}

std::uint64_t ssd_entry_bytes(std::size_t name_bytes, std::uint64_t value_bytes) {
    return whole_sectors(ssd_value_offset(name_bytes) + value_bytes);
}

std::string encode_segment_header(const SsdSegmentHeader& header) {
    std::string bytes;
    ByteWriter writer(bytes);
    writer.text(kSegmentMagic);
    writer.number(kSegmentVersion);
    writer.number(static_cast<std::uint8_t>(header.retention));
    writer.number(header.number);
    writer.number(header.nonce);
    append_checksum(bytes);
    bytes.resize(kSsdSectorBytes);
    return bytes;
}

Result<SsdSegmentHeader> decode_segment_header(std::string_view sector) {
    if (sector.size() != kSsdSectorBytes || !sector.starts_with(kSegmentMagic))
        return corrupt("is no segment");
    ByteReader reader(sector.substr(kSegmentMagic.size()));
    if (const auto version = reader.number<std::uint32_t>(); version != kSegmentVersion) {
        return std::unexpected(
            Error::unsupported("is a segment of format " + std::to_string(version) +
                               "; this program knows " + std::to_string(kSegmentVersion)));
    }
    if (!checked(sector, kSegmentHeaderBytes)) return corrupt("has a damaged first sector");
    const auto retention = reader.number<std::uint8_t>();
    if (retention > static_cast<std::uint8_t>(Retention::kNone))
        return corrupt("is of no known class");
    SsdSegmentHeader header{.retention = static_cast<Retention>(retention)};
    header.number = reader.number<std::uint64_t>();
    header.nonce = reader.number<std::uint64_t>();
    return header;
}

std::string encode_entry_header(const SsdEntryHeader& header) {
    SLUICE_ASSERT(header.name.size() <= kSsdNameBytes);
    std::string bytes;
    ByteWriter writer(bytes);
    writer.text(kEntryMagic);
    writer.number(static_cast<std::uint32_t>(header.name.size()));
    writer.number(header.value_bytes);
    writer.number(header.nonce);
    writer.number(header.sequence);
    writer.number(static_cast<std::uint64_t>(header.expires_ms));
    writer.number(header.slot);
    writer.checksum(header.value_checksum);
    writer.checksum(entry_checksum(bytes, header.name));
    writer.text(header.name);
    bytes.resize(ssd_value_offset(header.name.size()));
    return bytes;
}

Result<SsdEntryHeader> decode_entry_header(std::string_view bytes, std::uint64_t nonce) {
    constexpr std::size_t kHead = kEntryFixedBytes + kChecksumBytes;
    if (bytes.size() < kHead || !bytes.starts_with(kEntryMagic)) return corrupt("is no entry");
    ByteReader reader(bytes.substr(kEntryMagic.size()));
    const auto name_bytes = reader.number<std::uint32_t>();
    if (name_bytes > kSsdNameBytes || bytes.size() - kHead < name_bytes)
        return corrupt("has a name that is longer than any");
    SsdEntryHeader header;
    header.value_bytes = reader.number<std::uint64_t>();
    header.nonce = reader.number<std::uint64_t>();
    header.sequence = reader.number<std::uint64_t>();
    header.expires_ms = static_cast<std::int64_t>(reader.number<std::uint64_t>());
    header.slot = reader.number<std::uint32_t>();
    header.value_checksum = reader.checksum();
    header.name = bytes.substr(kHead, name_bytes);
    if (reader.checksum() != entry_checksum(bytes.substr(0, kEntryFixedBytes), header.name))
        return corrupt("has a damaged head");
    if (header.nonce != nonce) return corrupt("is of another segment");
    if (header.slot >= kSsdSegmentEntries || header.value_bytes > kSegmentBytesMax)
        return corrupt("is larger than any");
    return header;
}

Result<std::string_view> decode_entry(std::string_view bytes, std::uint64_t nonce,
                                      std::string_view name) {
    const auto header = decode_entry_header(bytes, nonce);
    if (!header) return std::unexpected(header.error());
    if (header->name != name) return corrupt("is another's entry");
    const std::size_t offset = ssd_value_offset(name.size());
    if (bytes.size() < offset || bytes.size() - offset < header->value_bytes)
        return corrupt("is cut off");
    const std::string_view value = bytes.substr(offset, header->value_bytes);
    if (checksum_of(value) != header->value_checksum) return corrupt("has a damaged value");
    return value;
}

std::string encode_footer(std::span<const SsdRecord> records, std::uint64_t footer_offset,
                          std::uint64_t nonce) {
    std::string bytes;
    ByteWriter writer(bytes);
    for (const SsdRecord& record : records) {
        writer.number(record.offset);
        writer.number(record.value_bytes);
        writer.number(record.sequence);
        writer.number(static_cast<std::uint64_t>(record.expires_ms));
        writer.number(record.slot);
        writer.number(static_cast<std::uint32_t>(record.name.size()));
        writer.number(record.parent);
        writer.text(record.name);
    }
    const std::size_t footer_bytes = bytes.size();
    const Xxh128 sum = checksum_of(bytes);
    bytes.resize(whole_sectors(footer_bytes));

    std::string last;
    ByteWriter trailer(last);
    trailer.text(kFooterMagic);
    trailer.number(kFooterVersion);
    trailer.number(static_cast<std::uint32_t>(records.size()));
    trailer.number(footer_offset);
    trailer.number(std::uint64_t{footer_bytes});
    trailer.number(nonce);
    trailer.checksum(sum);
    append_checksum(last);
    last.resize(kSsdSectorBytes);
    return bytes + last;
}

bool is_trailer(std::string_view sector) { return sector.starts_with(kFooterMagic); }

Result<SsdTrailer> decode_trailer(std::string_view sector, std::uint64_t nonce,
                                  std::uint64_t file_bytes) {
    if (sector.size() != kSsdSectorBytes || !sector.starts_with(kFooterMagic) ||
        !checked(sector, kTrailerBytes)) {
        return corrupt("has no footer");
    }
    ByteReader reader(sector.substr(kFooterMagic.size()));
    SsdTrailer trailer{.version = reader.number<std::uint32_t>()};
    if (trailer.version != kFooterVersion && trailer.version != kFooterVersionWithoutParents)
        return corrupt("has a footer of another format");
    trailer.entries = reader.number<std::uint32_t>();
    trailer.footer_offset = reader.number<std::uint64_t>();
    trailer.footer_bytes = reader.number<std::uint64_t>();
    trailer.nonce = reader.number<std::uint64_t>();
    trailer.footer_checksum = reader.checksum();
    if (trailer.nonce != nonce) return corrupt("has another segment's footer");
    const bool fits =
        file_bytes <= kSegmentBytesMax && trailer.footer_offset >= kSsdSectorBytes &&
        trailer.footer_offset % kSsdSectorBytes == 0 && trailer.footer_offset <= file_bytes &&
        trailer.footer_bytes <= file_bytes &&
        trailer.footer_offset + whole_sectors(trailer.footer_bytes) + kSsdSectorBytes == file_bytes;
    if (!fits || trailer.entries > kSsdSegmentEntries)
        return corrupt("has a footer that does not fit it");
    return trailer;
}

Result<std::vector<SsdRecord>> decode_footer(std::string_view bytes, const SsdTrailer& trailer) {
    if (bytes.size() != trailer.footer_bytes || checksum_of(bytes) != trailer.footer_checksum)
        return corrupt("has a damaged footer");
    std::vector<SsdRecord> records;
    const bool has_parents = trailer.version != kFooterVersionWithoutParents;
    const std::size_t record_bytes = kSsdRecordBytes - (has_parents ? 0 : sizeof(std::uint64_t));
    records.reserve(std::min<std::size_t>(trailer.entries, bytes.size() / record_bytes));
    ByteReader reader(bytes);
    std::uint64_t free_from = kSsdSectorBytes;
    std::uint32_t free_slot = 0;
    for (std::uint32_t i = 0; i < trailer.entries; ++i) {
        if (reader.left() < record_bytes) return corrupt("has a footer that is cut off");
        SsdRecord record;
        record.offset = reader.number<std::uint64_t>();
        record.value_bytes = reader.number<std::uint64_t>();
        record.sequence = reader.number<std::uint64_t>();
        record.expires_ms = static_cast<std::int64_t>(reader.number<std::uint64_t>());
        record.slot = reader.number<std::uint32_t>();
        const auto name_bytes = reader.number<std::uint32_t>();
        if (has_parents) record.parent = reader.number<std::uint64_t>();
        if (name_bytes > kSsdNameBytes || reader.left() < name_bytes)
            return corrupt("has a footer with a name that is longer than any");
        record.name = reader.text(name_bytes);
        if (record.offset < free_from || record.offset % kSsdSectorBytes != 0 ||
            record.offset > trailer.footer_offset || record.slot < free_slot ||
            record.slot >= kSsdSegmentEntries || record.value_bytes > trailer.footer_offset ||
            ssd_entry_bytes(name_bytes, record.value_bytes) >
                trailer.footer_offset - record.offset) {
            return corrupt("has a footer with an entry that is not in it");
        }
        free_slot = record.slot + 1;
        free_from = record.offset + ssd_entry_bytes(name_bytes, record.value_bytes);
        records.push_back(std::move(record));
    }
    if (reader.left() != 0) return corrupt("has a footer that is too long");
    return records;
}

}  // namespace sluice::kv
