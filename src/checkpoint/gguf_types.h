#pragma once

// The two number spaces of GGUF: types of metadata values and types of tensor elements. Both are
// open: a newer writer may use numbers this table doesn't have, so every look-up can come up empty.
//
// Source: the GGUF specification and ggml's public type list; removed numbers are left out.

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::checkpoint {

enum class ValueType : std::uint32_t {
    kU8 = 0,
    kI8 = 1,
    kU16 = 2,
    kI16 = 3,
    kU32 = 4,
    kI32 = 5,
    kF32 = 6,
    kBool = 7,
    kString = 8,
    kArray = 9,
    kU64 = 10,
    kI64 = 11,
    kF64 = 12,
};

/// Bytes of one scalar; 0 for strings and arrays; nothing for a number that isn't a type.
[[nodiscard]] std::optional<std::uint32_t> value_bytes(std::uint32_t type);

/// "u32", "string"; "type 77" for a number that isn't a type.
[[nodiscard]] std::string value_type_name(std::uint32_t type);

/// Elements are stored in blocks of `elements`, each `bytes` long; a row is whole blocks.
struct BlockLayout {
    std::uint32_t elements = 1;
    std::uint32_t bytes = 0;
};

inline constexpr std::uint32_t kTensorF32 = 0;
inline constexpr std::uint32_t kTensorF16 = 1;
inline constexpr std::uint32_t kTensorQ8_0 = 8;
inline constexpr std::uint32_t kTensorBf16 = 30;

/// Nothing for a type this table doesn't know.
[[nodiscard]] std::optional<BlockLayout> block_layout(std::uint32_t raw_type);

/// The name of a tensor type in the field ("q8_0", "q4_K"); "type 77" if unknown.
[[nodiscard]] std::string tensor_type_name(std::uint32_t raw_type);

}  // namespace sluice::checkpoint
