#include "gateway/kv_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>
#include <cstdlib>
#include <exception>
#include <utility>

#include "base/durable_file.h"
#include "base/limits.h"
#include "net/query.h"

namespace sluice::gateway {
namespace {

namespace json = boost::json;

constexpr std::size_t kFileBytes = 1024 * 1024;
constexpr std::size_t kTextBytes = 4'096;
constexpr auto kSchemes =
    std::to_array<std::string_view>({"redis://", "rediss://", "redis+cluster://"});

std::string_view scheme_of(std::string_view url) {
    const auto* const found = std::ranges::find_if(
        kSchemes, [&](std::string_view each) { return url.starts_with(each); });
    return found == kSchemes.end() ? std::string_view() : *found;
}

json::array to_value(const std::vector<KvNode>& nodes) {
    json::array array;
    for (const KvNode& node : nodes)
        array.push_back(
            {{"url", node.url}, {"http", node.http}, {"password_env", node.password_env}});
    return array;
}

/// Throws what Boost.JSON throws.
std::vector<KvNode> from_value(const json::value& value) {
    std::vector<KvNode> nodes;
    for (const json::value& each : value.as_array())
        nodes.push_back({.url = json::value_to<std::string>(each.at("url")),
                         .http = json::value_to<std::string>(each.at("http")),
                         .password_env = json::value_to<std::string>(each.at("password_env"))});
    return nodes;
}

}  // namespace

Result<void> check_kv_node(const KvNode& node) {
    const auto wrong = [](const char* what, const char* field) {
        return std::unexpected(Error::invalid(what, field));
    };
    for (const std::string* text : {&node.url, &node.http, &node.password_env}) {
        const bool is_text = std::ranges::all_of(
            *text, [](char c) { return c > ' ' && c != '\x7F' && c != '"' && c != '\\'; });
        if (!is_text || text->size() > kTextBytes) return wrong("is too long or no text", "url");
    }
    const std::string_view scheme = scheme_of(node.url);
    const std::string_view rest = std::string_view(node.url).substr(scheme.size());
    if (rest.find('@') != std::string_view::npos)
        return wrong("holds a password: name the variable that holds it in password_env", "url");
    if (scheme.empty() || rest.find(':') == std::string_view::npos ||
        rest.find_first_of("/?#") != std::string_view::npos)
        return wrong("must be like redis://10.0.0.7:7301", "url");
    const bool http = node.http.starts_with("http://") || node.http.starts_with("https://");
    if (!node.http.empty() && (!http || node.http.ends_with('/')))
        return wrong("must be like http://10.0.0.7:7401", "http");
    return {};
}

Result<KvMembers> KvMembers::open(std::string path, std::vector<KvNode> configured) {
    KvMembers members(std::move(path));
    if (const auto read = members.read(); !read) return std::unexpected(read.error());
    if (members.configured_ == configured) return members;
    std::vector<KvNode> nodes = configured;
    const auto has = [](const std::vector<KvNode>& list, const KvNode& node) {
        return std::ranges::find(list, node.url, &KvNode::url) != list.end();
    };
    for (const KvNode& node : members.nodes_)
        if (!has(members.configured_, node) && !has(nodes, node)) nodes.push_back(node);
    members.configured_ = std::move(configured);
    if (const auto changed = members.change(std::move(nodes)); !changed)
        return std::unexpected(changed.error());
    return members;
}

Result<void> KvMembers::read() {
    if (path_.empty()) return {};
    const auto text = read_if_there(path_, kFileBytes);
    if (!text) return std::unexpected(text.error());
    if (!*text) return {};
    try {
        const json::value file = json::parse(**text);
        epoch_ = file.at("epoch").to_number<std::uint64_t>();
        configured_ = from_value(file.at("configured"));
        nodes_ = from_value(file.at("nodes"));
        return {};
    } catch (const std::exception&) {
        return std::unexpected(Error(ErrorCode::kCorrupt, "is no list of cache nodes", path_));
    }
}

/// Nothing has changed unless it could be written down.
Result<void> KvMembers::change(std::vector<KvNode> nodes) {
    const std::uint64_t epoch = std::max(epoch_, seen_) + 1;
    if (!path_.empty()) {
        const json::object file{
            {"epoch", epoch}, {"configured", to_value(configured_)}, {"nodes", to_value(nodes)}};
        if (const auto written = write_durably(path_, json::serialize(file)); !written)
            return written;
    }
    epoch_ = epoch;
    nodes_ = std::move(nodes);
    return {};
}

const KvNode* KvMembers::find(std::string_view url) const {
    const auto found = std::ranges::find(nodes_, url, &KvNode::url);
    return found == nodes_.end() ? nullptr : &*found;
}

Result<bool> KvMembers::add(KvNode node) {
    if (const auto good = check_kv_node(node); !good) return std::unexpected(good.error());
    // Better now than when the first worker is to be told.
    if (const auto known = password_of(node); !known) return std::unexpected(known.error());
    std::vector<KvNode> nodes = nodes_;
    const auto known = std::ranges::find(nodes, node.url, &KvNode::url);
    if (known != nodes.end() && *known == node) return false;
    if (known != nodes.end()) {
        *known = std::move(node);
    } else if (nodes.size() == limits::kKvStores) {
        return std::unexpected(
            Error(ErrorCode::kExhausted, fmt::format("there are {} nodes already", nodes.size())));
    } else {
        nodes.push_back(std::move(node));
    }
    if (const auto changed = change(std::move(nodes)); !changed)
        return std::unexpected(changed.error());
    return true;
}

Result<void> KvMembers::remove(std::string_view url) {
    std::vector<KvNode> nodes = nodes_;
    if (std::erase_if(nodes, [&](const KvNode& node) { return node.url == url; }) == 0)
        return std::unexpected(
            Error(ErrorCode::kNotFound, fmt::format("there is no cache node \"{}\" here", url)));
    return change(std::move(nodes));
}

Result<void> KvMembers::overtake() { return change(nodes_); }

void KvMembers::saw(std::uint64_t epoch) { seen_ = std::max(seen_, epoch); }

Result<std::string> password_of(const KvNode& node) {
    if (node.password_env.empty()) return std::string();
    const char* const password = std::getenv(node.password_env.c_str());
    if (password != nullptr && *password != '\0') return std::string(password);
    return std::unexpected(Error::invalid(
        fmt::format("{} takes its password from ${}, which is not set in the gateway's environment",
                    node.url, node.password_env),
        "password_env"));
}

Result<std::string> url_with_password(const KvNode& node) {
    const auto password = password_of(node);
    if (!password) return std::unexpected(password.error());
    if (password->empty()) return node.url;
    const std::string_view scheme = scheme_of(node.url);
    return fmt::format("{}:{}@{}", scheme, net::percent_encode(*password),
                       std::string_view(node.url).substr(scheme.size()));
}

}  // namespace sluice::gateway
