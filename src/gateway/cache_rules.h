#pragma once

// Who finds what a request leaves in the caches, and how long it is kept there: from its tenant's rules
// and what the request says. docs/cache.md is the long answer.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/retention.h"
#include "gateway/inbound_request.h"
#include "protocol/request_outline.h"

namespace sluice::gateway {

/// Who shares the cached prefixes of a tenant's requests, from the first user message on. Tools and
/// system text before it are always shared by the whole tenant.
enum class PrefixShare : std::uint8_t { kTenant, kUser, kSession };

/// Of a tenant.
struct CacheRules {
    PrefixShare share = PrefixShare::kTenant;
    Retention retention = Retention::kChat;  ///< Of requests without tools.
    std::uint64_t bytes =
        0;  ///< Of the memory of each that holds blocks; 0: what that says itself.
};

/// What keeps a conversation's own blocks apart; empty if its whole tenant shares them.
/// `conversation` is x-sluice-conversation, or empty.
[[nodiscard]] std::string own_salt(PrefixShare share, std::string_view tenant,
                                   const protocol::RequestOutline& outline,
                                   std::string_view conversation);

/// What the request asks for, else agent for one with tools, else the tenant's.
[[nodiscard]] Retention retention_of(const InboundRequest& request, Retention tenants);

/// For an engine that takes one salt for all of a prompt: it is kept as close as its most private part.
[[nodiscard]] const std::string& narrowest_salt(const InboundRequest& request);

}  // namespace sluice::gateway
