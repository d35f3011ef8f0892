#include "kv/block_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "kv/byte_codec.h"

namespace sluice::kv {
namespace {

constexpr std::string_view kMagic = "SLUICEKV";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kChecksumBytes = 16;
/// The header without its component's text.
constexpr std::size_t kFixedHeaderBytes = 3 * sizeof(Sha256Digest) + 4 + 1 + kChecksumBytes;

struct Sizes {
    std::size_t header = 0;
    std::size_t payload = 0;
    [[nodiscard]] std::size_t whole() const {
        return kBlockPrefixBytes + header + payload + kChecksumBytes;
    }
};

Result<Sizes> read_prefix(std::string_view bytes) {
    if (bytes.size() < kBlockPrefixBytes)
        return std::unexpected(
            Error::corrupt(fmt::format("{} bytes are too few for a block's value", bytes.size())));
    ByteReader reader(bytes);
    if (reader.text(kMagic.size()) != kMagic)
        return std::unexpected(Error::corrupt("this is no block's value"));
    if (const auto version = reader.number<std::uint32_t>(); version != kVersion)
        return std::unexpected(Error::unsupported(fmt::format(
            "the block's value is of version {}, but only {} is known", version, kVersion)));
    const auto header = reader.number<std::uint32_t>();
    if (header < kFixedHeaderBytes || header > kFixedHeaderBytes + kComponentBytes)
        return std::unexpected(
            Error::corrupt(fmt::format("a block's header can't have {} bytes", header)));
    const auto payload = reader.number<std::uint64_t>();
    if (payload > limits::kKvBlockBytes)
        return std::unexpected(Error::corrupt(fmt::format(
            "the block has {} bytes, but at most {} are taken", payload, limits::kKvBlockBytes)));
    return Sizes{.header = header, .payload = payload};
}

}  // namespace

std::string encode_block(const BlockHeader& header, std::size_t payload_bytes,
                         FunctionRef<void(std::span<std::byte>)> fill) {
    SLUICE_ASSERT(header.component.size() <= kComponentBytes);
    SLUICE_ASSERT(payload_bytes <= limits::kKvBlockBytes);
    const Sizes sizes{.header = kFixedHeaderBytes + header.component.size(),
                      .payload = payload_bytes};
    std::string value;
    value.reserve(sizes.whole());
    ByteWriter writer(value);
    writer.text(kMagic);
    writer.number(kVersion);
    writer.number(static_cast<std::uint32_t>(sizes.header));
    writer.number(static_cast<std::uint64_t>(sizes.payload));
    writer.digest(header.key);
    writer.digest(header.parent);
    writer.digest(header.producer);
    writer.number(header.tokens);
    writer.number(static_cast<std::uint8_t>(header.component.size()));
    writer.text(header.component);
    const std::size_t checksum_at = value.size();
    const std::size_t payload_at = checksum_at + kChecksumBytes;
    value.resize(payload_at + payload_bytes);
    const auto payload =
        std::as_writable_bytes(std::span(value.data() + payload_at, payload_bytes));
    fill(payload);
    std::string sum;
    ByteWriter(sum).checksum(xxh3_128(payload));
    value.replace(checksum_at, kChecksumBytes, sum);
    writer.checksum(checksum_of(value));
    return value;
}

Result<std::size_t> block_value_bytes(std::string_view prefix) {
    const auto sizes = read_prefix(prefix);
    if (!sizes) return std::unexpected(sizes.error());
    return sizes->whole();
}

Result<BlockHeader> read_block_start(std::string_view start) {
    const auto sizes = read_prefix(start);
    if (!sizes) return std::unexpected(sizes.error());
    if (start.size() < kBlockPrefixBytes + sizes->header)
        return std::unexpected(Error::corrupt("the block's value ends within its header"));
    BlockHeader header;
    ByteReader reader(start.substr(kBlockPrefixBytes));
    header.key = reader.digest();
    header.parent = reader.digest();
    header.producer = reader.digest();
    header.tokens = reader.number<std::uint32_t>();
    const auto name_bytes = reader.number<std::uint8_t>();
    if (kFixedHeaderBytes + name_bytes != sizes->header)
        return std::unexpected(
            Error::corrupt("the block's header has another length than it says"));
    header.component = reader.text(name_bytes);
    header.payload_checksum = reader.checksum();
    return header;
}

Result<BlockHeader> read_block_header(std::string_view value) {
    const auto sizes = read_prefix(value);
    if (!sizes) return std::unexpected(sizes.error());
    if (value.size() != sizes->whole())
        return std::unexpected(Error::corrupt(fmt::format(
            "the block's value has {} bytes instead of {}", value.size(), sizes->whole())));
    return read_block_start(value);
}

Result<BlockValue> open_checked_block(std::string_view value) {
    auto header = read_block_header(value);
    if (!header) return std::unexpected(header.error());
    BlockValue block{.header = std::move(*header), .payload = {}};
    std::string_view payload = value.substr(0, value.size() - kChecksumBytes);
    payload.remove_prefix(kBlockPrefixBytes + kFixedHeaderBytes + block.header.component.size());
    block.payload = std::as_bytes(std::span(payload.data(), payload.size()));
    return block;
}

Result<BlockValue> decode_block(std::string_view value) {
    auto block = open_checked_block(value);
    if (!block) return block;
    const std::string_view covered = value.substr(0, value.size() - kChecksumBytes);
    if (ByteReader(value.substr(covered.size())).checksum() != checksum_of(covered))
        return std::unexpected(Error::corrupt("the block's checksum is wrong"));
    if (xxh3_128(block->payload) != block->header.payload_checksum)
        return std::unexpected(Error::corrupt("the block's payload has another checksum"));
    return block;
}

}  // namespace sluice::kv
