#pragma once

// All API keys of a service, as one JSON document that holds no secret. Whoever reads the file can
// name the keys, but not use them.
//
// A revoked key stays in the table, so that old records still name it. Reading, keeping and
// replacing the file is the caller's; so is the clock. Not thread-safe.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "admission/api_key.h"
#include "base/error.h"

namespace sluice::admission {

/// What the owner of a new key decides.
struct KeyWish {
    std::string tenant;
    std::string name;
    bool admin = false;
    std::optional<UnixTime> expires{};
};

class KeyTable {
public:
    /// Error `kInvalid` or `kOutOfRange` with a JSON path; nothing is taken from a document with a
    /// mistake. An empty text is an empty table.
    [[nodiscard]] static Result<KeyTable> parse(std::string_view json);

    /// A document that `parse` reads back.
    [[nodiscard]] std::string to_json() const;

    /// In the order of their making.
    [[nodiscard]] const std::vector<ApiKey>& keys() const { return keys_; }

    /// The key whose text this is and which is valid at `now`; null otherwise. Takes the same time
    /// for a wrong secret as for an unknown key.
    [[nodiscard]] const ApiKey* authenticate(std::string_view text, UnixTime now) const;

    [[nodiscard]] const ApiKey* find(std::string_view id) const;

    /// Adds a key and returns its text, which is nowhere else. Error `kInvalid` for a bad tenant or
    /// name, `kOutOfRange` if the table is full or the expiry has passed.
    [[nodiscard]] Result<std::string> add(const KeyWish& wish, KeyEntropy entropy, UnixTime now);

    /// Error `kNotFound` if there is no such key. Twice is fine: the first time stands.
    [[nodiscard]] Result<void> revoke(std::string_view id, UnixTime now);

private:
    [[nodiscard]] Result<void> insert(ApiKey key);

    std::vector<ApiKey> keys_;
    std::unordered_map<std::string, std::size_t> by_id_;
};

}  // namespace sluice::admission
