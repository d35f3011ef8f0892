#include "tests/support/gguf_builder.h"

#include <unistd.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "checkpoint/gguf_types.h"
#include "tests/places.h"
#include "tests/support/half.h"

namespace sluice::test {
namespace {

using checkpoint::ValueType;

std::uint32_t number(ValueType type) { return static_cast<std::uint32_t>(type); }

template <class T>
std::vector<std::byte> scalar(ValueType type, T value) {
    return ByteWriter().put(number(type)).put(value).bytes();
}

template <class T>
std::vector<std::byte> array(ValueType type, std::span<const T> values) {
    ByteWriter raw;
    raw.put(number(ValueType::kArray)).put(number(type)).put(std::uint64_t{values.size()});
    return raw.put_bytes(std::as_bytes(values)).bytes();
}

std::uint64_t aligned(std::uint64_t offset, std::uint64_t alignment) {
    return (offset + alignment - 1) / alignment * alignment;
}

template <class T>
T read_at(std::span<const std::byte> bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes.subspan(offset, sizeof(T)).data(), sizeof(T));
    return value;
}

std::vector<float> widened_q8_0(std::span<const std::byte> data) {
    constexpr std::size_t kBlockBytes = 34;
    std::vector<float> result;
    for (std::size_t block = 0; block < data.size(); block += kBlockBytes) {
        const float scale = half_to_float(read_at<std::uint16_t>(data, block));
        for (std::size_t i = 0; i < 32; ++i) {
            result.push_back(scale * static_cast<float>(read_at<std::int8_t>(data, block + 2 + i)));
        }
    }
    return result;
}

}  // namespace

ByteWriter& ByteWriter::put_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
}

ByteWriter& ByteWriter::put_string(std::string_view text) {
    put(std::uint64_t{text.size()});
    return put_bytes(std::as_bytes(std::span(text.data(), text.size())));
}

ByteWriter& ByteWriter::pad(std::uint64_t alignment) {
    bytes_.resize(aligned(bytes_.size(), alignment));
    return *this;
}

GgufBuilder& GgufBuilder::version(std::uint32_t version) {
    version_ = version;
    return *this;
}

GgufBuilder& GgufBuilder::alignment(std::uint32_t alignment) {
    alignment_ = alignment;
    return *this;
}

GgufBuilder& GgufBuilder::claim_tensors(std::uint64_t count) {
    claimed_tensors_ = count;
    return *this;
}

GgufBuilder& GgufBuilder::claim_values(std::uint64_t count) {
    claimed_values_ = count;
    return *this;
}

GgufBuilder& GgufBuilder::add_u32(std::string_view key, std::uint32_t value) {
    return add_raw(key, scalar(ValueType::kU32, value));
}

GgufBuilder& GgufBuilder::add_u64(std::string_view key, std::uint64_t value) {
    return add_raw(key, scalar(ValueType::kU64, value));
}

GgufBuilder& GgufBuilder::add_i32(std::string_view key, std::int32_t value) {
    return add_raw(key, scalar(ValueType::kI32, value));
}

GgufBuilder& GgufBuilder::add_f32(std::string_view key, float value) {
    return add_raw(key, scalar(ValueType::kF32, value));
}

GgufBuilder& GgufBuilder::add_f64(std::string_view key, double value) {
    return add_raw(key, scalar(ValueType::kF64, value));
}

GgufBuilder& GgufBuilder::add_bool(std::string_view key, bool value) {
    return add_raw(key, scalar(ValueType::kBool, static_cast<std::uint8_t>(value)));
}

GgufBuilder& GgufBuilder::add_string(std::string_view key, std::string_view value) {
    return add_raw(key, ByteWriter().put(number(ValueType::kString)).put_string(value).bytes());
}

GgufBuilder& GgufBuilder::add_strings(std::string_view key, std::span<const std::string> values) {
    ByteWriter raw;
    raw.put(number(ValueType::kArray)).put(number(ValueType::kString));
    raw.put(std::uint64_t{values.size()});
    for (const std::string& value : values) raw.put_string(value);
    return add_raw(key, raw.bytes());
}

GgufBuilder& GgufBuilder::add_i32s(std::string_view key, std::span<const std::int32_t> values) {
    return add_raw(key, array(ValueType::kI32, values));
}

GgufBuilder& GgufBuilder::add_f32s(std::string_view key, std::span<const float> values) {
    return add_raw(key, array(ValueType::kF32, values));
}

GgufBuilder& GgufBuilder::add_raw(std::string_view key, std::span<const std::byte> raw) {
    entries_.push_back({std::string(key), {raw.begin(), raw.end()}});
    return *this;
}

GgufBuilder& GgufBuilder::remove(std::string_view key) {
    std::erase_if(entries_, [key](const Entry& entry) { return entry.key == key; });
    return *this;
}

GgufBuilder& GgufBuilder::add_tensor(std::string_view name, std::uint32_t raw_type,
                                     std::vector<std::uint64_t> shape,
                                     std::vector<std::byte> data) {
    tensors_.push_back({std::string(name), raw_type, std::move(shape), std::move(data), {}});
    return *this;
}

GgufBuilder& GgufBuilder::add_f32_tensor(std::string_view name, std::vector<std::uint64_t> shape,
                                         std::span<const float> data) {
    const auto bytes = std::as_bytes(data);
    return add_tensor(name, checkpoint::kTensorF32, std::move(shape), {bytes.begin(), bytes.end()});
}

GgufBuilder& GgufBuilder::claim_offset(std::uint64_t offset) {
    tensors_.back().offset = offset;
    return *this;
}

std::vector<std::byte> GgufBuilder::build() const {
    std::vector<Entry> entries = entries_;
    if (alignment_) {
        entries.push_back({"general.alignment", scalar(ValueType::kU32, *alignment_)});
    }
    // A nonsensical alignment is written as it is, but can't be worked with.
    const std::uint64_t step = alignment_.value_or(0) > 0 ? *alignment_ : 32;

    ByteWriter file;
    file.put(std::uint32_t{0x46554747}).put(version_);
    file.put(claimed_tensors_.value_or(tensors_.size()));
    file.put(claimed_values_.value_or(entries.size()));
    for (const Entry& entry : entries) file.put_string(entry.key).put_bytes(entry.raw);

    std::uint64_t offset = 0;
    for (const Tensor& tensor : tensors_) {
        file.put_string(tensor.name).put(static_cast<std::uint32_t>(tensor.shape.size()));
        for (const std::uint64_t size : tensor.shape) file.put(size);
        file.put(tensor.raw_type).put(tensor.offset.value_or(offset));
        offset = aligned(offset + tensor.data.size(), step);
    }
    for (const Tensor& tensor : tensors_) file.pad(step).put_bytes(tensor.data);
    return file.bytes();
}

std::vector<float> widened(const checkpoint::TensorView& tensor) {
    std::vector<float> result;
    switch (tensor.type) {
        case checkpoint::DataType::kF32:
            result.resize(tensor.data.size() / 4);
            std::memcpy(result.data(), tensor.data.data(), tensor.data.size());
            return result;
        case checkpoint::DataType::kF16:
            for (std::size_t i = 0; i < tensor.data.size(); i += 2) {
                result.push_back(half_to_float(read_at<std::uint16_t>(tensor.data, i)));
            }
            return result;
        case checkpoint::DataType::kBf16:
            for (std::size_t i = 0; i < tensor.data.size(); i += 2) {
                const std::uint32_t bits = read_at<std::uint16_t>(tensor.data, i);
                result.push_back(std::bit_cast<float>(bits << 16));
            }
            return result;
        case checkpoint::DataType::kQ8_0: return widened_q8_0(tensor.data);
        case checkpoint::DataType::kOther: break;
    }
    throw std::invalid_argument("this tensor type can't be widened: " + std::string(tensor.name));
}

std::vector<std::byte> widened_to_f32(const checkpoint::GgufFile& file) {
    constexpr std::uint32_t kFileTypeAllF32 = 0;
    GgufBuilder builder;
    for (const checkpoint::MetadataEntry& entry : file.metadata()) {
        builder.add_raw(entry.key, entry.raw);
    }
    builder.remove("general.file_type").add_u32("general.file_type", kFileTypeAllF32);
    for (const checkpoint::TensorView& tensor : file.tensors()) {
        builder.add_f32_tensor(tensor.name, tensor.shape, widened(tensor));
    }
    return builder.build();
}

TemporaryFile::~TemporaryFile() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove(path_, ignored);
}

TemporaryFile write_temporary(std::string_view name, std::span<const std::byte> bytes) {
    static std::atomic<int> count = 0;
    TemporaryFile file(std::filesystem::temp_directory_path() /
                       ("sluice-test-" + std::to_string(::getpid()) + "-" +
                        std::to_string(count++) + "-" + std::string(name)));
    std::ofstream out(file.path(), std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) throw std::runtime_error("cannot write " + file.path().string());
    return file;
}

std::filesystem::path krill_file(std::string_view name) {
    return std::filesystem::path(sluice::kSourceDir) / "models" / "krill" / name;
}

}  // namespace sluice::test
