#pragma once

// Who may ask for what. Without a single key a service trusts whoever reaches it, and therefore
// listens on loopback; from the first key on everybody needs one, unless the configuration opens the
// service in words.

#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "gateway/key_ring.h"
#include "net/http_message.h"
#include "protocol/errors.h"

namespace sluice::gateway {

struct AccessRules {
    /// A client needs a key even while there is none: others can reach the address.
    bool clients_need_keys = false;
    /// The configuration says that anyone may use this: a key only names a tenant.
    bool open = false;
    /// Of the admin address.
    bool admins_need_keys = false;
};

struct Caller {
    std::string tenant = "default";
    bool admin = false;
    std::string key_id;  ///< Empty without a key.
};

class Access {
public:
    Access() = default;
    Access(AccessRules rules, KeyRing keys) : rules_(rules), keys_(std::move(keys)) {}

    /// Who sends this to the client address; an error is `kUnauthorized`.
    [[nodiscard]] std::expected<Caller, protocol::ApiError> client(
        const net::HttpRequest& request) const;
    /// The same for the admin address.
    [[nodiscard]] std::expected<Caller, protocol::ApiError> admin(
        const net::HttpRequest& request) const;

    [[nodiscard]] KeyRing& keys() { return keys_; }

private:
    AccessRules rules_;
    KeyRing keys_;
};

/// Whether the service may be started like this; the error says what to change.
[[nodiscard]] Result<AccessRules> access_rules(const HostPort& listen, const HostPort& admin,
                                               bool open, const KeyRing& keys);

/// Refuses pools that can't keep the cached prefixes of tenants apart where there is more than one of
/// these: `one_tenant_pools` names such pools.
[[nodiscard]] Result<void> check_isolation(const std::vector<std::string>& one_tenant_pools,
                                           bool open, const KeyRing& keys);

}  // namespace sluice::gateway
