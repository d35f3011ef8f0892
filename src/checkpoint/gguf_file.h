#pragma once

// A GGUF checkpoint (versions 2 and 3, little-endian), memory-mapped. Checkpoints come from
// strangers, so nothing in the file is believed: every count, length, offset, alignment and product
// is checked once, in parse(). After that each view handed out lies wholly inside the file, and no
// later access can fail or fault.
//
// Views (names, strings, tensor data) point into the mapping and live as long as the GgufFile;
// moving it keeps them valid. Immutable after parse, so threads may share it. Tensor data is aligned
// within the file to `general.alignment`; metadata is not aligned to anything.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "checkpoint/mapped_file.h"

namespace sluice::checkpoint {

/// Element types the engine computes with; every other type is kOther.
enum class DataType : std::uint8_t { kF32, kF16, kBf16, kQ8_0, kOther };

struct TensorView {
    std::string_view name;
    DataType type = DataType::kOther;
    std::uint32_t raw_type = 0;  ///< As in the file; see gguf_types.h.
    /// ggml order: shape[0] is the contiguous dimension. 1 to 4 dimensions, none of them zero.
    std::vector<std::uint64_t> shape;
    /// Empty only where the size of `raw_type` is unknown.
    std::span<const std::byte> data;

    [[nodiscard]] std::uint64_t elements() const;
};

/// One metadata entry, described for people. The text is valid UTF-8 without control characters.
struct MetadataEntry {
    std::string key;                 ///< Unprintable bytes escaped.
    std::string type;                ///< "string", "array of u32"
    std::string text;                ///< Cut to a line.
    std::span<const std::byte> raw;  ///< Type number and value as they stand in the file.
};

class GgufFile {
public:
    /// Maps and checks the file. An error's place is the path and then the place in the file.
    [[nodiscard]] static Result<GgufFile> open(const std::filesystem::path& path);
    /// The same from memory, which the caller keeps alive and unchanged.
    [[nodiscard]] static Result<GgufFile> parse(std::span<const std::byte> bytes);

    // Each answers nothing if the key is absent or of another kind. Integers are converted between
    // widths where the value fits.
    [[nodiscard]] std::optional<std::uint64_t> find_uint(std::string_view key) const;
    [[nodiscard]] std::optional<std::int64_t> find_int(std::string_view key) const;
    /// f32 and f64 values.
    [[nodiscard]] std::optional<double> find_float(std::string_view key) const;
    [[nodiscard]] std::optional<bool> find_bool(std::string_view key) const;
    [[nodiscard]] std::optional<std::string_view> find_string(std::string_view key) const;
    [[nodiscard]] std::optional<std::vector<std::string_view>> find_strings(
        std::string_view key) const;
    /// An array of any integer type.
    [[nodiscard]] std::optional<std::vector<std::int64_t>> find_ints(std::string_view key) const;
    /// An array of f32 values, such as token scores.
    [[nodiscard]] std::optional<std::vector<float>> find_floats(std::string_view key) const;
    [[nodiscard]] bool contains(std::string_view key) const;

    /// In the order of the file.
    [[nodiscard]] std::span<const TensorView> tensors() const { return tensors_; }
    /// Null if there is none.
    [[nodiscard]] const TensorView* find_tensor(std::string_view name) const;

    /// Every entry in the order of the file, described.
    [[nodiscard]] std::vector<MetadataEntry> metadata() const;

    [[nodiscard]] std::uint32_t version() const { return version_; }
    [[nodiscard]] std::uint64_t alignment() const { return alignment_; }
    /// The whole file.
    [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
    /// Of the file that was opened; none for bytes in memory.
    [[nodiscard]] const FileStamp& stamp() const { return file_.stamp(); }
    /// Gives the memory of a mapped file back; its pages come again as they are read.
    void release_pages() const { file_.release_pages(); }
    /// Magic, counts, metadata and tensor directory, without the padding before the tensor data.
    [[nodiscard]] std::span<const std::byte> header() const { return bytes_.first(header_bytes_); }

private:
    friend class GgufParser;

    /// A value that stays in the file; arrays are decoded when asked for.
    struct Value {
        std::string_view key;
        std::uint32_t type = 0;
        std::uint32_t element_type = 0;  ///< Arrays only.
        std::uint64_t count = 1;
        std::span<const std::byte> raw;      ///< From the type field on.
        std::span<const std::byte> payload;  ///< Without type and count fields.
    };

    [[nodiscard]] const Value* find(std::string_view key) const;

    MappedFile file_;
    std::span<const std::byte> bytes_;
    std::uint32_t version_ = 0;
    std::uint64_t alignment_ = 0;
    std::size_t header_bytes_ = 0;
    std::vector<Value> values_;
    std::vector<TensorView> tensors_;
    // Indices sorted by name, not hash tables: a hostile file must not choose the cost of a look-up.
    std::vector<std::uint32_t> values_by_key_;
    std::vector<std::uint32_t> tensors_by_name_;
};

}  // namespace sluice::checkpoint
