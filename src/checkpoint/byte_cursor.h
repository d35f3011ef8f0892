#pragma once

// Reads little-endian values one after the other from bytes that may be cut short or lie about
// their lengths. A failed read answers zero or nothing and every later one fails too, so that a
// parser checks once per item instead of once per field.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace sluice::checkpoint {

static_assert(std::endian::native == std::endian::little, "values are copied, not swapped");

class ByteCursor {
public:
    explicit ByteCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

    template <class T>
    T read() {
        const std::span<const std::byte> from = take(sizeof(T));
        T value{};
        if (!failed_) std::memcpy(&value, from.data(), sizeof(T));
        return value;
    }

    /// The next `size` bytes; `size` may be anything.
    std::span<const std::byte> take(std::uint64_t size) {
        if (failed_ || size > remaining()) {
            failed_ = true;
            return {};
        }
        const auto taken = bytes_.subspan(offset_, static_cast<std::size_t>(size));
        offset_ += taken.size();
        return taken;
    }

    /// A length of eight bytes and then that many.
    std::string_view read_string(std::uint64_t bytes_max) {
        const auto size = read<std::uint64_t>();
        if (size > bytes_max) failed_ = true;
        const std::span<const std::byte> text = take(size);
        return {reinterpret_cast<const char*>(text.data()), text.size()};
    }

    [[nodiscard]] bool failed() const { return failed_; }
    [[nodiscard]] std::size_t offset() const { return offset_; }
    [[nodiscard]] std::size_t remaining() const { return bytes_.size() - offset_; }

private:
    std::span<const std::byte> bytes_;
    std::size_t offset_ = 0;
    bool failed_ = false;
};

}  // namespace sluice::checkpoint
