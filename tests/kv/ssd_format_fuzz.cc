// Any bytes as what stands in a segment file. Checksums keep a fuzzer out, so the same bytes are tried
// raw and with right checksums, as from a disk written by somebody who knows the format. What is
// accepted must be what the encoder makes of it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "kv/byte_codec.h"
#include "kv/ssd_format.h"

namespace {

using namespace sluice::kv;

constexpr std::uint64_t kNonce = 77;

void try_segment_header(std::string_view bytes) {
    std::string sector(bytes.substr(0, kSsdSectorBytes));
    sector.resize(kSsdSectorBytes);
    const auto header = decode_segment_header(sector);
    if (header) SLUICE_ASSERT(*decode_segment_header(encode_segment_header(*header)) == *header);
}

void try_entry(std::string_view bytes) {
    (void)decode_entry_header(bytes, kNonce);
    (void)decode_entry(bytes, kNonce, "name");
    constexpr std::size_t kFixed = 56;
    if (bytes.size() < kFixed) return;
    // Magic and nonce as they must be, all else as given.
    std::string fixed =
        encode_entry_header({.nonce = kNonce, .value_checksum = {}, .name = {}}).substr(0, kFixed);
    for (std::size_t i = 4; i < kFixed; ++i)
        if (i < 16 || i >= 24) fixed[i] = bytes[i];
    const std::string_view rest = bytes.substr(kFixed);
    const auto name_bytes = ByteReader(std::string_view(fixed).substr(4)).number<std::uint32_t>();
    if (name_bytes > rest.size()) return;
    std::string whole = fixed;
    ByteWriter(whole).checksum(checksum_of(fixed + std::string(rest.substr(0, name_bytes))));
    whole += rest;
    const auto header = decode_entry_header(whole, kNonce);
    if (!header) return;
    const std::string again = encode_entry_header(*header);
    SLUICE_ASSERT(again.starts_with(std::string_view(whole).substr(0, 72 + header->name.size())));
    const auto value = decode_entry(whole, kNonce, header->name);
    SLUICE_ASSERT(!value || checksum_of(*value) == header->value_checksum);
}

void try_footer(std::string_view bytes) {
    std::string sector(bytes.substr(0, kSsdSectorBytes));
    sector.resize(kSsdSectorBytes);
    (void)decode_trailer(sector, kNonce, bytes.size());
    if (bytes.size() < 4) return;
    const SsdTrailer trailer{
        .version = 2,
        .entries = ByteReader(bytes).number<std::uint16_t>(),
        .footer_offset = std::uint64_t{4096} * (1 + static_cast<unsigned char>(bytes[2])),
        .footer_bytes = bytes.size() - 3,
        .nonce = kNonce,
        .footer_checksum = checksum_of(bytes.substr(3))};
    const auto records = decode_footer(bytes.substr(3), trailer);
    if (!records) return;
    const std::string again = encode_footer(*records, trailer.footer_offset, kNonce);
    SLUICE_ASSERT(again.starts_with(bytes.substr(3)));
    const auto read = decode_trailer(std::string_view(again).substr(again.size() - kSsdSectorBytes),
                                     kNonce, trailer.footer_offset + again.size());
    SLUICE_ASSERT(read && *read == trailer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    try_segment_header(bytes);
    try_entry(bytes);
    try_footer(bytes);
    return 0;
}
