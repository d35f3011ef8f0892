#pragma once

// Little-endian numbers and checksums in and out of byte strings, for what leaves the process.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace sluice::kv {

class ByteWriter {
public:
    explicit ByteWriter(std::string& out) : out_(out) {}
    void text(std::string_view text) { out_ += text; }
    void digest(const Sha256Digest& digest) {
        out_.append(reinterpret_cast<const char*>(digest.data()), digest.size());
    }
    template <class T>
    void number(T value) {
        for (std::size_t i = 0; i < sizeof(T); ++i)
            out_ += static_cast<char>((value >> (8 * i)) & 0xFF);
    }
    void checksum(const Xxh128& sum) {
        number(sum.low);
        number(sum.high);
    }

private:
    std::string& out_;
};

/// The caller has made sure that there is enough.
class ByteReader {
public:
    explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
    std::string_view text(std::size_t count) {
        const std::string_view taken = bytes_.substr(0, count);
        bytes_.remove_prefix(count);
        return taken;
    }
    Sha256Digest digest() {
        Sha256Digest digest{};
        std::memcpy(digest.data(), text(digest.size()).data(), digest.size());
        return digest;
    }
    template <class T>
    T number() {
        T value = 0;
        const std::string_view raw = text(sizeof(T));
        for (std::size_t i = 0; i < sizeof(T); ++i)
            value |= static_cast<T>(static_cast<T>(static_cast<unsigned char>(raw[i])) << (8 * i));
        return value;
    }
    Xxh128 checksum() {
        const auto low = number<std::uint64_t>();
        return {.low = low, .high = number<std::uint64_t>()};
    }
    [[nodiscard]] std::size_t left() const { return bytes_.size(); }

private:
    std::string_view bytes_;
};

inline Xxh128 checksum_of(std::string_view bytes) {
    return xxh3_128(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

}  // namespace sluice::kv
