#include "gateway/upstream_headers.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace sluice::gateway {
namespace {

constexpr auto kHopByHop = std::to_array<std::string_view>(
    {"connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization",
     "te", "trailer", "transfer-encoding", "upgrade", "content-length", "expect"});

/// Set anew, or not the upstream's business.
constexpr auto kNotSent =
    std::to_array<std::string_view>({"host", "accept-encoding", "content-type", "x-request-id",
                                     "cookie", "openai-organization", "openai-project"});

constexpr auto kNotPassedBack = std::to_array<std::string_view>(
    {"date", "server", "set-cookie", "x-request-id", "x-sluice-pool", "alt-svc"});

void lower(std::string_view text, std::string& out) {
    out = text;
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
}

std::string lower(std::string_view text) {
    std::string out;
    lower(text, out);
    return out;
}

bool is_one_of(std::string_view name, std::span<const std::string_view> list) {
    return std::ranges::find(list, name) != list.end();
}

/// Names that carry secrets come in many spellings.
bool is_secret(std::string_view name) {
    for (const std::string_view part : {"authorization", "api-key", "apikey", "token", "secret"})
        if (name.find(part) != std::string_view::npos) return true;
    return false;
}

/// The fields that belong to this connection alone: RFC 9110, section 7.6.1.
std::string connection_fields(const net::HttpHeaders& headers) {
    return lower(headers.find("connection").value_or(""));
}

bool is_listed(std::string_view name, const std::string& listed) {
    std::size_t at = 0;
    while ((at = listed.find(name, at)) != std::string::npos) {
        const std::size_t end = at + name.size();
        const bool begins = at == 0 || listed[at - 1] == ',' || listed[at - 1] == ' ';
        const bool ends = end == listed.size() || listed[end] == ',' || listed[end] == ' ';
        if (begins && ends) return true;
        at = end;
    }
    return false;
}

}  // namespace

net::HttpHeaders request_headers_for(const net::HttpHeaders& client, const std::string& api_key,
                                     const std::string& request_id) {
    const std::string of_connection = connection_fields(client);
    net::HttpHeaders headers;
    headers.reserve(client.size() + 4);  // The two below, the key, and traceparent.
    headers.add("Content-Type", "application/json");
    headers.add("x-request-id", request_id);
    std::string name;
    for (const auto& [field, value] : client) {
        lower(field, name);
        if (is_one_of(name, kHopByHop) || is_one_of(name, kNotSent) || is_secret(name) ||
            name.starts_with("x-sluice-") || is_listed(name, of_connection)) {
            continue;
        }
        headers.add(field, value);
    }
    if (!api_key.empty()) headers.add("Authorization", "Bearer " + api_key);
    return headers;
}

net::HttpHeaders answer_headers_from(const net::HttpHeaders& upstream, const std::string& pool,
                                     const std::string& request_id) {
    const std::string of_connection = connection_fields(upstream);
    net::HttpHeaders headers;
    headers.reserve(upstream.size() + 2);
    headers.add("x-request-id", request_id);
    headers.add("x-sluice-pool", pool);
    std::string name;
    for (const auto& [field, value] : upstream) {
        lower(field, name);
        if (!is_one_of(name, kHopByHop) && !is_one_of(name, kNotPassedBack) &&
            !is_listed(name, of_connection)) {
            headers.add(field, value);
        }
    }
    return headers;
}

}  // namespace sluice::gateway
