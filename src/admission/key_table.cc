#include "admission/key_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/limits.h"

namespace sluice::admission {
namespace {

namespace json = boost::json;

constexpr std::int64_t kVersion = 1;
constexpr std::size_t kNameBytes = 128;

std::unexpected<Error> wrong(std::string_view what, std::string place) {
    return std::unexpected(Error::invalid(std::string(what), std::move(place)));
}

bool is_key_name(std::string_view name) {
    const auto is_control = [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
    };
    return name.size() <= kNameBytes && std::ranges::none_of(name, is_control);
}

/// Reads the fields of one key; the first mistake is kept.
class KeyReader {
public:
    KeyReader(const json::object& object, std::string place)
        : object_(object), place_(std::move(place)) {}

    std::string text(std::string_view key) {
        const json::value* const value = take(key);
        if (value == nullptr || !value->is_string()) {
            reject(key, "must be text");
            return {};
        }
        return std::string(value->get_string());
    }
    bool boolean(std::string_view key) {
        const json::value* const value = take(key);
        if (value == nullptr || !value->is_bool()) {
            reject(key, "must be true or false");
            return false;
        }
        return value->get_bool();
    }
    /// null is nullopt.
    std::optional<UnixTime> time(std::string_view key) {
        const json::value* const value = take(key);
        if (value != nullptr && value->is_null()) return std::nullopt;
        if (value == nullptr || !value->is_int64()) {
            reject(key, "must be a whole number of seconds, or null");
            return std::nullopt;
        }
        return value->get_int64();
    }
    void reject(std::string_view key, std::string_view why) {
        if (!error_) error_ = Error::invalid(std::string(why), fmt::format("{}.{}", place_, key));
    }
    /// The first mistake; a field nobody asked for is one.
    [[nodiscard]] std::optional<Error> finish() {
        if (!error_ && taken_ != object_.size()) {
            error_ = Error::invalid("has a field that is not known here", place_);
        }
        return error_;
    }

private:
    const json::value* take(std::string_view key) {
        const json::value* const value = object_.if_contains(key);
        if (value != nullptr) ++taken_;
        return value;
    }

    const json::object& object_;
    std::string place_;
    std::size_t taken_ = 0;
    std::optional<Error> error_;
};

Result<ApiKey> read_key(const json::value& value, std::string place) {
    if (!value.is_object()) return wrong("must be an object", std::move(place));
    KeyReader reader(value.get_object(), std::move(place));
    ApiKey key{.id = reader.text("id"),
               .tenant = reader.text("tenant"),
               .name = reader.text("name"),
               .admin = reader.boolean("admin"),
               .created = reader.time("created").value_or(0),
               .expires = reader.time("expires"),
               .revoked = reader.time("revoked")};
    const auto digest = digest_from_hex(reader.text("sha256"));
    if (!is_key_id(key.id)) reader.reject("id", "must be 16 hexadecimal digits");
    if (!is_tenant_name(key.tenant)) reader.reject("tenant", "is not the name of a tenant");
    if (!is_key_name(key.name)) reader.reject("name", "is too long or holds control characters");
    if (!digest) reader.reject("sha256", "must be 64 hexadecimal digits");
    if (auto error = reader.finish()) return std::unexpected(*std::move(error));
    key.digest = *digest;
    return key;
}

json::value time_value(const std::optional<UnixTime>& time) {
    return time ? json::value(*time) : json::value(nullptr);
}

}  // namespace

Result<KeyTable> KeyTable::parse(std::string_view text) {
    KeyTable table;
    if (text.empty()) return table;
    boost::system::error_code error;
    const json::value document = json::parse(text, error, {}, {.max_depth = 4});
    if (error) return wrong("is not JSON: " + error.message(), {});
    const json::object* const root = document.if_object();
    const json::value* const version = root ? root->if_contains("version") : nullptr;
    if (version == nullptr || !version->is_int64() || version->get_int64() != kVersion) {
        return wrong(fmt::format("must be {}", kVersion), "version");
    }
    const json::value* const keys = root->if_contains("keys");
    if (keys == nullptr || !keys->is_array()) return wrong("must be an array", "keys");
    for (std::size_t i = 0; i < keys->get_array().size(); ++i) {
        const std::string place = fmt::format("keys[{}]", i);
        auto key = read_key(keys->get_array()[i], place);
        if (!key) return std::unexpected(key.error());
        if (auto added = table.insert(*std::move(key)); !added) {
            return std::unexpected(added.error().within(place));
        }
    }
    return table;
}

std::string KeyTable::to_json() const {
    json::array keys;
    for (const ApiKey& key : keys_) {
        keys.push_back({{"id", key.id},
                        {"tenant", key.tenant},
                        {"name", key.name},
                        {"admin", key.admin},
                        {"created", key.created},
                        {"expires", time_value(key.expires)},
                        {"revoked", time_value(key.revoked)},
                        {"sha256", to_hex(key.digest)}});
    }
    return json::serialize(json::object{{"version", kVersion}, {"keys", std::move(keys)}}) + "\n";
}

const ApiKey* KeyTable::find(std::string_view id) const {
    const auto found = by_id_.find(std::string(id));
    return found == by_id_.end() ? nullptr : &keys_[found->second];
}

const ApiKey* KeyTable::authenticate(std::string_view text, UnixTime now) const {
    const auto id = key_id(text);
    if (!id) return nullptr;
    const Sha256Digest digest = key_digest(text);
    const ApiKey* const key = find(*id);
    const bool same = equal_in_constant_time(digest, key ? key->digest : Sha256Digest{});
    return key != nullptr && same && key->valid_at(now) ? key : nullptr;
}

Result<void> KeyTable::insert(ApiKey key) {
    if (keys_.size() >= limits::kApiKeys) {
        return std::unexpected(
            Error::out_of_range("the number of keys", keys_.size() + 1, limits::kApiKeys + 1));
    }
    if (!by_id_.emplace(key.id, keys_.size()).second) {
        return std::unexpected(Error::invalid("is the id of an earlier key", "id"));
    }
    keys_.push_back(std::move(key));
    return {};
}

Result<std::string> KeyTable::add(const KeyWish& wish, KeyEntropy entropy, UnixTime now) {
    if (!is_tenant_name(wish.tenant)) {
        return wrong("must be at most 64 of a-z, 0-9, '-' and '_'", "tenant");
    }
    if (!is_key_name(wish.name)) {
        return wrong(fmt::format("must be at most {} bytes without control characters", kNameBytes),
                     "name");
    }
    if (wish.expires && *wish.expires <= now) {
        return std::unexpected(Error(ErrorCode::kOutOfRange, "has passed already", "expires"));
    }
    std::string text = key_text(entropy);
    auto added = insert({.id = std::string(*key_id(text)),
                         .tenant = wish.tenant,
                         .name = wish.name,
                         .admin = wish.admin,
                         .created = now,
                         .expires = wish.expires,
                         .digest = key_digest(text)});
    if (!added) return std::unexpected(added.error());
    return text;
}

Result<void> KeyTable::revoke(std::string_view id, UnixTime now) {
    const auto found = by_id_.find(std::string(id));
    if (found == by_id_.end()) {
        return std::unexpected(Error::not_found("there is no key with this id", "id"));
    }
    std::optional<UnixTime>& revoked = keys_[found->second].revoked;
    if (!revoked) revoked = now;
    return {};
}

}  // namespace sluice::admission
