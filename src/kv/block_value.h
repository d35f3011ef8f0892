#pragma once

// What a key names, as bytes that can leave the process: a header that says what the payload is, the
// payload, and checksums over both. Whoever reads a value believes nothing that it has not checked:
// a value from a cut-off connection, of another version, or with one flipped bit is an error, and an
// error is a block that has to be computed.
//
//   prefix    magic "SLUICEKV", version u32, header bytes u32, payload bytes u64
//   header    key 32, parent 32, producer 32, token count u32, component (u8 length, text),
//             XXH3-128 of the payload
//   payload
//   trailer   XXH3-128 of everything before it
//
// Numbers are little-endian. A checksum finds accidents; it is no signature.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/function_ref.h"
#include "kv/block_key.h"

namespace sluice::kv {

/// So many bytes tell how long a value is.
inline constexpr std::size_t kBlockPrefixBytes = 24;
/// Longest name of a component.
inline constexpr std::size_t kComponentBytes = 64;
/// So many bytes hold any value's header.
inline constexpr std::size_t kBlockStartBytes = 256;

struct BlockHeader {
    BlockKey key{};
    BlockKey parent{};         ///< The root of the sequence for its first block.
    std::string component;     ///< "mla"; at most kComponentBytes.
    std::uint32_t tokens = 0;  ///< Fewer than a block's in the last block of a sequence.
    Sha256Digest producer{};   ///< Digest of the version that computed it.
    Xxh128 payload_checksum;   ///< The encoder fills it in.
    bool operator==(const BlockHeader&) const = default;
};

/// A value; `fill` writes its payload of `payload_bytes`, which must be at most limits::kKvBlockBytes.
[[nodiscard]] std::string encode_block(const BlockHeader& header, std::size_t payload_bytes,
                                       FunctionRef<void(std::span<std::byte>)> fill);

struct BlockValue {
    BlockHeader header;
    std::span<const std::byte> payload;  ///< Into the bytes that were decoded.
};

/// The length of the whole value that starts with `prefix`, of which kBlockPrefixBytes are there.
/// `kUnsupported`: of another version; `kCorrupt`: no value, or longer than any may be.
[[nodiscard]] Result<std::size_t> block_value_bytes(std::string_view prefix);

/// The header of the value that starts with `start`, of which kBlockStartBytes are enough: as it says,
/// nothing but its own length is checked.
[[nodiscard]] Result<BlockHeader> read_block_start(std::string_view start);

/// The header as it says: nothing but lengths is checked. For whoever keeps a value and doesn't read it.
[[nodiscard]] Result<BlockHeader> read_block_header(std::string_view value);

/// Checks everything but the key, whose tokens it doesn't know. Errors as above.
[[nodiscard]] Result<BlockValue> decode_block(std::string_view value);

/// The same without the checksums, for a value that `decode_block` took, in this process.
[[nodiscard]] Result<BlockValue> open_checked_block(std::string_view value);

}  // namespace sluice::kv
