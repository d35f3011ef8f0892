#include "discovery/etcd_codec.h"

#include <openssl/evp.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <limits>

namespace sluice::discovery {
namespace {

namespace json = boost::json;

std::unexpected<Error> not_etcd() {
    return std::unexpected(Error::corrupt("it does not answer as etcd does"));
}

/// nullopt if it is no JSON object.
std::optional<json::object> read_object(std::string_view text) {
    boost::system::error_code error;
    json::parse_options limits;
    limits.max_depth = 8;
    json::value value = json::parse(text, error, {}, limits);
    if (error || !value.is_object()) return std::nullopt;
    return std::move(value.get_object());
}

std::optional<std::string_view> text_at(const json::object& object, std::string_view key) {
    const json::value* const found = object.if_contains(key);
    if (found == nullptr || !found->is_string()) return std::nullopt;
    return found->get_string();
}

/// 0 where the field is left out; nullopt if it is no number.
std::optional<std::int64_t> number_at(const json::object& object, std::string_view key) {
    const json::value* const found = object.if_contains(key);
    if (found == nullptr) return 0;
    if (found->is_int64()) return found->get_int64();
    if (!found->is_string()) return std::nullopt;
    const std::string_view digits = found->get_string();
    std::int64_t number = 0;
    const auto [end, status] = std::from_chars(digits.begin(), digits.end(), number);
    if (status != std::errc() || end != digits.end()) return std::nullopt;
    return number;
}

std::optional<std::string> bytes_at(const json::object& object, std::string_view key) {
    return from_base64(text_at(object, key).value_or(""));
}

std::optional<EtcdKeyValue> key_value(const json::value& value) {
    if (!value.is_object()) return std::nullopt;
    auto key = bytes_at(value.get_object(), "key");
    auto bytes = bytes_at(value.get_object(), "value");
    if (!key || key->empty() || !bytes) return std::nullopt;
    return EtcdKeyValue{.key = std::move(*key), .value = std::move(*bytes)};
}

/// The first key behind all that begin with `prefix`.
std::string end_of(std::string prefix) {
    while (!prefix.empty() && prefix.back() == '\xFF') prefix.pop_back();
    if (prefix.empty()) return std::string(1, '\0');  // To the end of all keys.
    prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
    return prefix;
}

}  // namespace

std::string to_base64(std::string_view bytes) {
    std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
    const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                     reinterpret_cast<const unsigned char*>(bytes.data()),
                                     static_cast<int>(bytes.size()));
    text.resize(static_cast<std::size_t>(size));
    return text;
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0 || text.size() > std::numeric_limits<int>::max()) return std::nullopt;
    // OpenSSL trims spaces at both ends, and counts padding as zero bytes.
    if (text.find_first_of(" \t\r\n") != std::string_view::npos) return std::nullopt;
    const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
    if (text.find('=') < text.size() - padding) return std::nullopt;
    std::string bytes(3 * (text.size() / 4), '\0');
    const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                     reinterpret_cast<const unsigned char*>(text.data()),
                                     static_cast<int>(text.size()));
    if (size < 0) return std::nullopt;
    bytes.resize(bytes.size() - padding);
    return bytes;
}

std::string range_request(std::string_view prefix, std::optional<std::int64_t> since) {
    json::object body{{"key", to_base64(prefix)},
                      {"range_end", to_base64(end_of(std::string(prefix)))}};
    if (since) body["min_mod_revision"] = std::to_string(*since + 1);
    return json::serialize(body);
}

Result<EtcdRange> parse_range(std::string_view text) {
    const auto object = read_object(text);
    if (!object) return not_etcd();
    const json::value* const header = object->if_contains("header");
    if (header == nullptr || !header->is_object()) return not_etcd();
    const auto revision = number_at(header->get_object(), "revision");
    const auto count = number_at(*object, "count");
    if (!revision || *revision <= 0 || !count || *count < 0) return not_etcd();
    EtcdRange range{.revision = *revision, .count = *count, .kvs = {}};
    const json::value* const kvs = object->if_contains("kvs");
    if (kvs == nullptr) return range;
    if (!kvs->is_array()) return not_etcd();
    for (const json::value& each : kvs->get_array()) {
        auto pair = key_value(each);
        if (!pair) return not_etcd();
        range.kvs.push_back(std::move(*pair));
    }
    return range;
}

std::string grant_request(std::int64_t seconds) {
    return json::serialize(json::object{{"TTL", std::to_string(seconds)}});
}

Result<std::string> parse_grant(std::string_view text) {
    const auto object = read_object(text);
    const auto id = object ? number_at(*object, "ID") : std::nullopt;
    if (!id || *id == 0) return not_etcd();
    return std::to_string(*id);
}

std::string put_request(std::string_view key, std::string_view value, std::string_view lease) {
    return json::serialize(
        json::object{{"key", to_base64(key)}, {"value", to_base64(value)}, {"lease", lease}});
}

std::string lease_request(std::string_view lease) {
    return json::serialize(json::object{{"ID", lease}});
}

Result<std::int64_t> parse_keep_alive(std::string_view text) {
    const auto object = read_object(text);
    const json::value* const result = object ? object->if_contains("result") : nullptr;
    if (result == nullptr || !result->is_object()) return not_etcd();
    const auto left = number_at(result->get_object(), "TTL");
    if (!left) return not_etcd();
    return *left;
}

std::string to_json(const WorkerEntry& worker) {
    return json::serialize(json::object{
        {"url", worker.url}, {"pool", worker.pool}, {"phase", to_string(worker.phase)}});
}

Result<WorkerEntry> parse_worker_json(std::string_view text) {
    const auto object = read_object(text);
    if (!object) return std::unexpected(Error::invalid("a worker is a JSON object"));
    const auto needed = [&](std::string_view key) -> Result<std::string> {
        if (const auto value = text_at(*object, key)) return std::string(*value);
        return std::unexpected(Error::invalid("must be text", std::string(key)));
    };
    auto pool = needed("pool");
    if (!pool) return std::unexpected(pool.error());
    auto url = needed("url");
    if (!url) return std::unexpected(url.error());
    if (const auto good = check_worker_url(*url); !good) return std::unexpected(good.error());
    WorkerEntry worker{.pool = std::move(*pool), .url = std::move(*url)};
    if (!object->contains("phase")) return worker;
    const auto name = needed("phase");
    if (!name) return std::unexpected(name.error());
    const auto phase = parse_phase(*name);
    if (!phase) return std::unexpected(phase.error());
    worker.phase = *phase;
    return worker;
}

}  // namespace sluice::discovery
