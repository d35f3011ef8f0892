#pragma once

// Writes GGUF files for tests, good ones and bad ones: nothing is checked here, because what the
// reader makes of nonsense is what such tests are about.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/gguf_file.h"

namespace sluice::test {

/// Appends little-endian values.
class ByteWriter {
public:
    template <class T>
    ByteWriter& put(T value) {
        const auto bytes = std::as_bytes(std::span(&value, 1));
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
        return *this;
    }
    ByteWriter& put_bytes(std::span<const std::byte> bytes);
    /// A length of eight bytes and the text.
    ByteWriter& put_string(std::string_view text);
    /// Zeroes up to a multiple of `alignment`.
    ByteWriter& pad(std::uint64_t alignment);

    [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }
    [[nodiscard]] std::size_t size() const { return bytes_.size(); }

private:
    std::vector<std::byte> bytes_;
};

class GgufBuilder {
public:
    GgufBuilder& version(std::uint32_t version);
    /// Where tensors go; written as `general.alignment` by build() if set.
    GgufBuilder& alignment(std::uint32_t alignment);
    /// Claims instead of the true counts.
    GgufBuilder& claim_tensors(std::uint64_t count);
    GgufBuilder& claim_values(std::uint64_t count);

    GgufBuilder& add_u32(std::string_view key, std::uint32_t value);
    GgufBuilder& add_u64(std::string_view key, std::uint64_t value);
    GgufBuilder& add_i32(std::string_view key, std::int32_t value);
    GgufBuilder& add_f32(std::string_view key, float value);
    GgufBuilder& add_f64(std::string_view key, double value);
    GgufBuilder& add_bool(std::string_view key, bool value);
    GgufBuilder& add_string(std::string_view key, std::string_view value);
    GgufBuilder& add_strings(std::string_view key, std::span<const std::string> values);
    GgufBuilder& add_i32s(std::string_view key, std::span<const std::int32_t> values);
    GgufBuilder& add_f32s(std::string_view key, std::span<const float> values);
    /// `raw` is type number and value, as MetadataEntry::raw.
    GgufBuilder& add_raw(std::string_view key, std::span<const std::byte> raw);
    /// Drops every entry with this key.
    GgufBuilder& remove(std::string_view key);

    GgufBuilder& add_tensor(std::string_view name, std::uint32_t raw_type,
                            std::vector<std::uint64_t> shape, std::vector<std::byte> data);
    GgufBuilder& add_f32_tensor(std::string_view name, std::vector<std::uint64_t> shape,
                                std::span<const float> data);
    /// An offset instead of the next free one for the tensor added last.
    GgufBuilder& claim_offset(std::uint64_t offset);

    [[nodiscard]] std::vector<std::byte> build() const;

private:
    struct Entry {
        std::string key;
        std::vector<std::byte> raw;
    };
    struct Tensor {
        std::string name;
        std::uint32_t raw_type;
        std::vector<std::uint64_t> shape;
        std::vector<std::byte> data;
        std::optional<std::uint64_t> offset;
    };

    std::uint32_t version_ = 3;
    std::optional<std::uint32_t> alignment_;
    std::optional<std::uint64_t> claimed_tensors_;
    std::optional<std::uint64_t> claimed_values_;
    std::vector<Entry> entries_;
    std::vector<Tensor> tensors_;
};

/// The same model with every weight widened to f32 (from f32, f16, bf16 or q8_0), bit-exactly.
[[nodiscard]] std::vector<std::byte> widened_to_f32(const checkpoint::GgufFile& file);

/// Elements of a tensor of type f32, f16, bf16 or q8_0 as f32.
[[nodiscard]] std::vector<float> widened(const checkpoint::TensorView& tensor);

/// A file of a test's own, which ends with its scope. What is mapped of it stays.
class TemporaryFile {
public:
    TemporaryFile(TemporaryFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    TemporaryFile& operator=(TemporaryFile&&) = delete;
    ~TemporaryFile();

    // NOLINTNEXTLINE(google-explicit-constructor): it stands wherever its path may.
    operator const std::filesystem::path&() const { return path_; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

private:
    friend TemporaryFile write_temporary(std::string_view name, std::span<const std::byte> bytes);
    explicit TemporaryFile(std::filesystem::path path) : path_(std::move(path)) {}

    std::filesystem::path path_;
};

/// Writes to a new file in the test's temporary folder.
[[nodiscard]] TemporaryFile write_temporary(std::string_view name,
                                            std::span<const std::byte> bytes);

/// models/krill/NAME in the source tree, for example "krill-f16.gguf".
[[nodiscard]] std::filesystem::path krill_file(std::string_view name);

}  // namespace sluice::test
