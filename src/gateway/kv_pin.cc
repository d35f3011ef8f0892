#include "gateway/kv_pin.h"

#include <fmt/format.h>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/limits.h"
#include "kv/block_name.h"
#include "protocol/request_outline.h"

namespace sluice::gateway {
namespace {

namespace json = boost::json;

/// Blocks of class none are kept nowhere.
constexpr auto kKept = {Retention::kAgent, Retention::kChat};

std::string text_of(const json::object& body, std::string_view field, std::string otherwise = {}) {
    const json::value* const value = body.if_contains(field);
    if (value == nullptr || !value->is_string()) return otherwise;
    return std::string(value->get_string());
}

Result<std::vector<std::string>> names_of(const std::string& tenant,
                                          const std::vector<kv::BlockKey>& keys) {
    if (keys.empty())
        return std::unexpected(Error::invalid("it is shorter than one block: nothing is kept"));
    if (keys.size() * kKept.size() > port::kKvOrderNames)
        return std::unexpected(
            Error(ErrorCode::kOutOfRange,
                  fmt::format("it has {} blocks, too many for one order", keys.size())));
    std::vector<std::string> names;
    for (const Retention retention : kKept)
        for (const kv::BlockKey& key : keys)
            names.push_back(kv::to_wire({.tenant = tenant, .retention = retention, .key = key}));
    return names;
}

Result<std::vector<std::string>> names_of_request(const std::string& id, const KvHistory& history) {
    const KvHistory::Entry* const entry = history.find(id);
    if (entry != nullptr) return names_of(entry->tenant, entry->keys);
    return std::unexpected(Error(ErrorCode::kNotFound,
                                 fmt::format("the blocks of request \"{}\" are not known here", id),
                                 "id"));
}

Result<std::vector<std::string>> names_of_chat(const json::object& body, const json::value& chat,
                                               const PinContext& context) {
    const std::string tenant = text_of(body, "tenant", "default");
    const std::string text = json::serialize(chat);
    const auto outline = protocol::read_outline(text);
    if (!outline) return std::unexpected(outline.error().within("request"));
    const auto rules = context.caches.find(tenant);
    const PrefixShare share =
        rules == context.caches.end() ? PrefixShare::kTenant : rules->second.share;
    const kv::Salt salt{.shared = tenant,
                        .own = own_salt(share, tenant, *outline, text_of(body, "conversation"))};
    const auto keys = context.pool.name_prompt(text, salt);
    if (!keys) return std::unexpected(keys.error().within("request"));
    return names_of(tenant, *keys);
}

Result<std::vector<std::string>> read_names(const json::value& list) {
    std::vector<std::string> names;
    const auto wrong = [](std::string why) {
        return std::unexpected(Error::invalid(std::move(why), "names"));
    };
    if (!list.is_array()) return wrong("must be a list of names");
    if (list.get_array().size() > port::kKvOrderNames)
        return wrong(fmt::format("has more than {} names", port::kKvOrderNames));
    for (const json::value& each : list.get_array()) {
        const json::string* const text = each.if_string();
        if (text == nullptr || !kv::parse_block_name({text->data(), text->size()}))
            return wrong("must be names of blocks: kv:TENANT:CLASS:KEY");
        names.emplace_back(text->data(), text->size());
    }
    return names;
}

}  // namespace

Result<port::KvPinOrder> read_pin(std::string_view body, const PinContext& context) {
    boost::system::error_code error;
    const json::value value = json::parse(body, error);
    if (error || !value.is_object())
        return std::unexpected(Error::invalid("the body must be a JSON object"));
    const json::object& object = value.get_object();
    const json::value* const seconds = object.if_contains("seconds");
    if (seconds == nullptr || !seconds->is_int64() || seconds->get_int64() < 0 ||
        seconds->get_int64() > limits::kKvPinSeconds)
        return std::unexpected(Error::invalid(
            fmt::format("must be a whole number from 0 to {}", limits::kKvPinSeconds), "seconds"));
    Result<std::vector<std::string>> names =
        std::unexpected(Error::invalid("names, id or request is missing"));
    if (const json::value* const list = object.if_contains("names")) names = read_names(*list);
    if (object.contains("id")) names = names_of_request(text_of(object, "id"), context.history);
    if (const json::value* const chat = object.if_contains("request"))
        names = names_of_chat(object, *chat, context);
    if (!names) return std::unexpected(names.error());
    return port::KvPinOrder{.names = std::move(*names), .seconds = seconds->get_int64()};
}

}  // namespace sluice::gateway
