#include "gateway/cache_rules.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace sluice::gateway {

std::string own_salt(PrefixShare share, std::string_view tenant,
                     const protocol::RequestOutline& outline, std::string_view conversation) {
    // Named with the tenant, because it may be the only salt that an engine takes.
    const auto narrowed = [&](std::string_view kind, std::string_view whose) {
        return fmt::format("{}/{}/{}", tenant, kind, to_hex(sha256(whose)).substr(0, 32));
    };
    switch (share) {
        case PrefixShare::kTenant: return {};
        case PrefixShare::kUser: return narrowed("user", outline.user);
        case PrefixShare::kSession:
            return narrowed("session", protocol::conversation_key(outline, conversation, tenant));
    }
    return {};
}

Retention retention_of(const InboundRequest& request, Retention tenants) {
    const bool has_tools = request.outline.kind == RequestKind::kTools;
    return request.retention_asked.value_or(has_tools ? Retention::kAgent : tenants);
}

const std::string& narrowest_salt(const InboundRequest& request) {
    return request.own_salt.empty() ? request.salt : request.own_salt;
}

}  // namespace sluice::gateway
