#pragma once

// An API key: who may send requests, and in which tenant's name.
//
//   sk-sluice-<16 hex digits: the key's id>-<64 hex digits: 256 random bits>
//
// The text is shown once, when the key is made. What is stored is its SHA-256. A slow hash such as
// Argon2 protects secrets that people choose, because those can be guessed; 256 random bits can't,
// by anybody, at any speed, so a slow hash would cost each request milliseconds and add nothing. A
// salt keeps equal secrets from having equal hashes and tables from being made ahead; here the id is
// hashed along and does both.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/hash.h"

namespace sluice::admission {

/// Seconds since 1970.
using UnixTime = std::int64_t;

struct ApiKey {
    std::string id;      ///< 16 hexadecimal digits; no secret.
    std::string tenant;  ///< As `is_tenant_name` has it.
    std::string name;    ///< For people: who uses it.
    bool admin = false;  ///< May use the admin address and what only operators may.
    UnixTime created = 0;
    std::optional<UnixTime> expires{};  ///< Invalid from this second on.
    std::optional<UnixTime> revoked{};
    Sha256Digest digest{};

    [[nodiscard]] bool valid_at(UnixTime now) const {
        return !revoked && (!expires || now < *expires);
    }
    bool operator==(const ApiKey&) const = default;
};

/// Up to 64 of a-z, 0-9, '-' and '_', at least one.
[[nodiscard]] bool is_tenant_name(std::string_view name);

inline constexpr std::size_t kKeyEntropyBytes = 8 + 32;
using KeyEntropy = std::span<const std::uint8_t, kKeyEntropyBytes>;

/// The text of a key made of `entropy`: the id, then the secret.
[[nodiscard]] std::string key_text(KeyEntropy entropy);

/// The id within a key's text, or nullopt if it is none of ours.
[[nodiscard]] std::optional<std::string_view> key_id(std::string_view text);

[[nodiscard]] bool is_key_id(std::string_view id);

/// What is stored of a key.
[[nodiscard]] Sha256Digest key_digest(std::string_view text);

}  // namespace sluice::admission
