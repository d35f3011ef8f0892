#pragma once

// SHA-256 where a name must not be forged (block keys, fingerprints), XXH3-128 where only
// accidents are at stake (checksums of large data).

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

using Sha256Digest = std::array<std::uint8_t, 32>;

/// Incremental SHA-256. Not copyable; `finish` may be called once. A thread's first one allocates,
/// those that follow it do not.
class Sha256 {
public:
    Sha256();
    ~Sha256();
    Sha256(const Sha256&) = delete;
    Sha256& operator=(const Sha256&) = delete;

    Sha256& update(std::span<const std::byte> data);
    Sha256& update(std::string_view text);
    /// Eight bytes, little end first, on every machine.
    Sha256& update_u64(std::uint64_t value);
    [[nodiscard]] Sha256Digest finish();

private:
    struct Context;
    struct Recycle {
        void operator()(Context* context) const;
    };
    std::unique_ptr<Context, Recycle> context_;
};

[[nodiscard]] Sha256Digest sha256(std::string_view text);

struct Xxh128 {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    bool operator==(const Xxh128&) const = default;
};

[[nodiscard]] Xxh128 xxh3_128(std::span<const std::byte> data);

/// Whether both digests are equal, in a time that tells nothing about where they differ.
[[nodiscard]] bool equal_in_constant_time(const Sha256Digest& left, const Sha256Digest& right);

/// Lower-case hexadecimal.
[[nodiscard]] std::string to_hex(std::span<const std::uint8_t> bytes);
/// Appends the last `digits` (at most 16) hexadecimal digits of `value`.
void append_hex(std::string& out, std::uint64_t value, int digits = 16);

/// 64 lower-case hexadecimal digits, or nullopt.
[[nodiscard]] std::optional<Sha256Digest> digest_from_hex(std::string_view text);

}  // namespace sluice
