#include "gateway/access.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/service_config.h"
#include "net/web_page.h"

namespace sluice::gateway {
namespace {

using protocol::ApiError;
using protocol::ApiErrorCode;

/// What the request shows as its key: OpenAI's clients use Authorization, Anthropic's x-api-key.
std::string_view shown_key(const net::HttpRequest& request) {
    constexpr std::string_view kScheme = "bearer ";
    std::string_view text = request.headers.find("authorization").value_or("");
    if (text.size() > kScheme.size()) {
        const bool bearer = std::ranges::equal(
            text.substr(0, kScheme.size()), kScheme,
            [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; });
        if (!bearer) return {};
        text.remove_prefix(kScheme.size());
        while (text.starts_with(' ')) text.remove_prefix(1);
        return text;
    }
    return request.headers.find("x-api-key").value_or("");
}

std::unexpected<ApiError> unauthorized(std::string message) {
    return std::unexpected(
        ApiError{.code = ApiErrorCode::kUnauthorized, .message = std::move(message), .param = {}});
}

std::unexpected<ApiError> key_needed() {
    return unauthorized("an API key is needed: \"Authorization: Bearer sk-sluice-...\"");
}

// Nobody learns which of the three it is: keys are not to be guessed one property at a time.
std::unexpected<ApiError> key_not_valid() {
    return unauthorized("this API key is unknown, expired or revoked");
}

Caller caller_of(const admission::ApiKey& key) {
    return {.tenant = key.tenant, .admin = key.admin, .key_id = key.id};
}

}  // namespace

std::expected<Caller, ApiError> Access::client(const net::HttpRequest& request) const {
    const bool closed = !rules_.open && (rules_.clients_need_keys || !keys_.empty());
    const std::string_view shown = shown_key(request);
    if (const admission::ApiKey* const key = keys_.authenticate(shown)) return caller_of(*key);
    if (closed) return shown.empty() ? key_needed() : key_not_valid();
    // Clients' libraries send some key even where none is asked for. One of ours is meant, though.
    if (!keys_.empty() && admission::key_id(shown)) return key_not_valid();
    // Where there are no keys and nobody else can connect, whoever asks is the operator.
    return Caller{.admin = !rules_.open && keys_.empty()};
}

std::expected<Caller, ApiError> Access::admin(const net::HttpRequest& request) const {
    if (!rules_.admins_need_keys) {
        // The machine's own users need no key; a page in one of their browsers is nobody's.
        if (request.method != "GET" && net::is_from_web_page(request))
            return unauthorized(std::string(net::kNoWebPages));
        return Caller{.admin = true};
    }
    const std::string_view shown = shown_key(request);
    if (shown.empty()) return key_needed();
    const admission::ApiKey* const key = keys_.authenticate(shown);
    if (key == nullptr) return key_not_valid();
    if (!key->admin) return unauthorized("this API key is not an admin's");
    return caller_of(*key);
}

Result<AccessRules> access_rules(const HostPort& listen, const HostPort& admin, bool open,
                                 const KeyRing& keys) {
    const bool exposed = !is_loopback(listen.host);
    const bool admin_exposed = !is_loopback(admin.host);
    if (exposed && !open && keys.empty()) {
        return std::unexpected(Error::invalid(
            fmt::format(
                "others can reach {}, and there is not one API key: make one with `sluice ctl "
                "keys add`, or write open = \"{}\" under [gateway]",
                to_string(listen), kOpenToAnyone),
            "gateway.listen"));
    }
    if (admin_exposed && !keys.has_valid_admin_key()) {
        return std::unexpected(Error::invalid(
            fmt::format(
                "others can reach {}, and there is no admin's key: make one with `sluice ctl "
                "keys add --admin`",
                to_string(admin)),
            "gateway.admin"));
    }
    return AccessRules{
        .clients_need_keys = exposed, .open = open, .admins_need_keys = admin_exposed};
}

Result<void> check_isolation(const std::vector<std::string>& one_tenant_pools, bool open,
                             const KeyRing& keys) {
    // Who has no key is a tenant, too, where that is allowed.
    const std::size_t tenants = keys.tenants() + (open || keys.empty() ? 1 : 0);
    if (one_tenant_pools.empty() || tenants <= 1) return {};
    return std::unexpected(Error::invalid(
        fmt::format("there are {} tenants, and pool {} can't keep their cached prefixes apart, as "
                    "engines vllm and sglang can; or write shared_cache = \"{}\" in its table",
                    tenants, one_tenant_pools.front(), kTenantsMayShare),
        "pool"));
}

}  // namespace sluice::gateway
