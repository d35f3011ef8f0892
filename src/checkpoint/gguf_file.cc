#include "checkpoint/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "checkpoint/byte_cursor.h"
#include "checkpoint/gguf_types.h"
#include "checkpoint/printable.h"

namespace sluice::checkpoint {
namespace {

constexpr auto kAnyLength = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kEntriesShown = 4;

/// The next integer of `type`; nothing if it isn't one or doesn't fit.
std::optional<std::int64_t> read_int(std::uint32_t type, ByteCursor& cursor) {
    switch (static_cast<ValueType>(type)) {
        case ValueType::kU8: return cursor.read<std::uint8_t>();
        case ValueType::kI8: return cursor.read<std::int8_t>();
        case ValueType::kU16: return cursor.read<std::uint16_t>();
        case ValueType::kI16: return cursor.read<std::int16_t>();
        case ValueType::kU32: return cursor.read<std::uint32_t>();
        case ValueType::kI32: return cursor.read<std::int32_t>();
        case ValueType::kI64: return cursor.read<std::int64_t>();
        case ValueType::kU64: {
            const auto value = cursor.read<std::uint64_t>();
            if (value > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
            return static_cast<std::int64_t>(value);
        }
        default: return std::nullopt;
    }
}

/// The next value of `type` as text.
std::string read_text(std::uint32_t type, ByteCursor& cursor) {
    switch (static_cast<ValueType>(type)) {
        case ValueType::kString: return printable(cursor.read_string(kAnyLength));
        case ValueType::kBool: return cursor.read<std::uint8_t>() != 0 ? "true" : "false";
        case ValueType::kF32: return fmt::format("{}", cursor.read<float>());
        case ValueType::kF64: return fmt::format("{}", cursor.read<double>());
        case ValueType::kU64: return fmt::format("{}", cursor.read<std::uint64_t>());
        default: return fmt::format("{}", read_int(type, cursor).value_or(0));
    }
}

constexpr bool is(std::uint32_t type, ValueType expected) {
    return type == static_cast<std::uint32_t>(expected);
}

}  // namespace

std::uint64_t TensorView::elements() const {
    std::uint64_t product = 1;
    for (const std::uint64_t size : shape) product *= size;
    return product;
}

const GgufFile::Value* GgufFile::find(std::string_view key) const {
    const auto key_at = [this](std::uint32_t i) { return values_[i].key; };
    const auto found = std::ranges::lower_bound(values_by_key_, key, {}, key_at);
    if (found == values_by_key_.end() || key_at(*found) != key) return nullptr;
    return &values_[*found];
}

const TensorView* GgufFile::find_tensor(std::string_view name) const {
    const auto name_at = [this](std::uint32_t i) { return tensors_[i].name; };
    const auto found = std::ranges::lower_bound(tensors_by_name_, name, {}, name_at);
    if (found == tensors_by_name_.end() || name_at(*found) != name) return nullptr;
    return &tensors_[*found];
}

bool GgufFile::contains(std::string_view key) const { return find(key) != nullptr; }

std::optional<std::uint64_t> GgufFile::find_uint(std::string_view key) const {
    const Value* const value = find(key);
    if (value == nullptr) return std::nullopt;
    ByteCursor cursor(value->payload);
    if (is(value->type, ValueType::kU64)) return cursor.read<std::uint64_t>();
    const std::optional<std::int64_t> number = read_int(value->type, cursor);
    if (!number || *number < 0) return std::nullopt;
    return static_cast<std::uint64_t>(*number);
}

std::optional<std::int64_t> GgufFile::find_int(std::string_view key) const {
    const Value* const value = find(key);
    if (value == nullptr) return std::nullopt;
    ByteCursor cursor(value->payload);
    return read_int(value->type, cursor);
}

std::optional<double> GgufFile::find_float(std::string_view key) const {
    const Value* const value = find(key);
    if (value == nullptr) return std::nullopt;
    ByteCursor cursor(value->payload);
    if (is(value->type, ValueType::kF32)) return cursor.read<float>();
    if (is(value->type, ValueType::kF64)) return cursor.read<double>();
    return std::nullopt;
}

std::optional<bool> GgufFile::find_bool(std::string_view key) const {
    const Value* const value = find(key);
    if (value == nullptr || !is(value->type, ValueType::kBool)) return std::nullopt;
    return ByteCursor(value->payload).read<std::uint8_t>() != 0;
}

std::optional<std::string_view> GgufFile::find_string(std::string_view key) const {
    const Value* const value = find(key);
    if (value == nullptr || !is(value->type, ValueType::kString)) return std::nullopt;
    return ByteCursor(value->payload).read_string(kAnyLength);
}

std::optional<std::vector<std::string_view>> GgufFile::find_strings(std::string_view key) const {
    const Value* const value = find(key);
    if (value == nullptr || !is(value->type, ValueType::kArray) ||
        !is(value->element_type, ValueType::kString)) {
        return std::nullopt;
    }
    std::vector<std::string_view> strings(value->count);
    ByteCursor cursor(value->payload);
    for (std::string_view& string : strings) string = cursor.read_string(kAnyLength);
    return strings;
}

std::optional<std::vector<std::int64_t>> GgufFile::find_ints(std::string_view key) const {
    const Value* const value = find(key);
    if (value == nullptr || !is(value->type, ValueType::kArray)) return std::nullopt;
    // Asked first, so that an array of another kind costs nothing.
    const bool integer = !is(value->element_type, ValueType::kString) &&
                         !is(value->element_type, ValueType::kBool) &&
                         !is(value->element_type, ValueType::kF32) &&
                         !is(value->element_type, ValueType::kF64);
    if (!integer) return std::nullopt;

    std::vector<std::int64_t> numbers;
    numbers.reserve(value->count);
    ByteCursor cursor(value->payload);
    for (std::uint64_t i = 0; i < value->count; ++i) {
        const std::optional<std::int64_t> number = read_int(value->element_type, cursor);
        if (!number) return std::nullopt;
        numbers.push_back(*number);
    }
    return numbers;
}

std::optional<std::vector<float>> GgufFile::find_floats(std::string_view key) const {
    const Value* const value = find(key);
    if (value == nullptr || !is(value->type, ValueType::kArray) ||
        !is(value->element_type, ValueType::kF32)) {
        return std::nullopt;
    }
    std::vector<float> numbers(value->count);
    ByteCursor cursor(value->payload);
    for (float& number : numbers) number = cursor.read<float>();
    return numbers;
}

std::vector<MetadataEntry> GgufFile::metadata() const {
    std::vector<MetadataEntry> entries;
    entries.reserve(values_.size());
    for (const Value& value : values_) {
        MetadataEntry entry;
        entry.key = printable(value.key);
        entry.raw = value.raw;
        ByteCursor cursor(value.payload);
        if (is(value.type, ValueType::kArray)) {
            entry.type = "array of " + value_type_name(value.element_type);
            entry.text = fmt::format("{} entries", value.count);
            for (std::uint64_t i = 0; i < std::min(value.count, kEntriesShown); ++i) {
                entry.text += (i == 0 ? ": " : ", ") + read_text(value.element_type, cursor);
            }
            if (value.count > kEntriesShown) entry.text += ", …";
        } else {
            entry.type = value_type_name(value.type);
            entry.text = read_text(value.type, cursor);
        }
        entries.push_back(std::move(entry));
    }
    return entries;
}

}  // namespace sluice::checkpoint
