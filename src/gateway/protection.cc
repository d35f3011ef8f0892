#include "gateway/protection.h"

#include <csignal>
#include <utility>

#include "base/log.h"

namespace sluice::gateway {

Result<Protection> Protection::load(const ProtectionOptions& options, GatewayOptions& gateway) {
    auto keys = KeyRing::load(options.keys_file);
    if (!keys) return std::unexpected(keys.error());
    const auto rules =
        access_rules({gateway.listen.address, gateway.listen.port},
                     {gateway.admin.address, gateway.admin.port}, options.open, *keys);
    if (!rules) return std::unexpected(rules.error());
    Protection protection;
    for (const UpstreamPoolOptions& pool : gateway.upstream_pools)
        if (pool.isolation == CacheIsolation::kNone)
            protection.one_tenant_pools_.push_back(pool.name);
    protection.open_ = options.open;
    if (const auto apart = check_isolation(protection.one_tenant_pools_, options.open, *keys);
        !apart)
        return std::unexpected(apart.error());
    protection.access_ = std::make_shared<Access>(*rules, *std::move(keys));
    gateway.access = protection.access_;
    if (options.tls_key.empty()) return protection;
    auto identity = net::TlsIdentity::load(options.tls_certificate, options.tls_key);
    if (!identity) return std::unexpected(identity.error());
    protection.identity_ = *std::move(identity);
    gateway.listen.tls = protection.identity_;
    if (options.tls_admin) gateway.admin.tls = protection.identity_;
    return protection;
}

void Protection::watch(net::EventLoop& loop) {
    loop.on_signal({SIGHUP}, [this](int) { look(); });
    look_later(loop);
}

void Protection::look_later(net::EventLoop& loop) {
    timer_ = loop.call_after(std::chrono::seconds(1), [this, &loop] {
        look();
        look_later(loop);
    });
}

/// Keys that are new must work, and keys that were revoked must not; so this can only be told.
void Protection::look_at_tenants() {
    const auto apart = check_isolation(one_tenant_pools_, open_, access_->keys());
    if (!apart && !mixed_) log::error("{}", apart.error().to_string());
    mixed_ = !apart.has_value();
}

void Protection::look() {
    access_->keys().refresh();
    look_at_tenants();
    if (!identity_ || !identity_->changed()) return;
    if (const auto done = identity_->reload(); !done) {
        log::error("the certificate stays as it was: {}", done.error().to_string());
    } else {
        log::info("the certificate was read again");
    }
}

}  // namespace sluice::gateway
