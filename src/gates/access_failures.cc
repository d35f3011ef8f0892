#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "gates/failure_mode.h"

namespace sluice::gates {
namespace {

/// A certificate that ends sooner is to be renewed now.
constexpr std::int64_t kRenewalDays = 14;

FailureMode of_service(Failure failure, const std::string& place) {
    FailureMode mode{.failure = failure, .subject = std::string(kWholeService)};
    mode.place = place;
    return mode;
}

bool others_reach(const Setting<HostPort>& address) { return !is_loopback(address->host); }

FailureMode stranger_asks(const GatewayConfig& gateway, const ServiceFacts& facts) {
    FailureMode mode = of_service(Failure::kStrangerAsks, gateway.listen.place);
    mode.rollback = "`sluice ctl keys add`, and start without open";
    if (gateway.open->has_value()) {
        mode.place = gateway.open.place;
        mode.advice =
            "the configuration opens the service to anyone: remove open, or say who keeps "
            "strangers out";
    } else if (!others_reach(gateway.listen)) {
        mode.caught_by = "listening on loopback only";
    } else if (facts.keys == std::size_t{0}) {
        mode.present = true;
        mode.advice =
            "there is not one API key, so that the service will not start: `sluice ctl keys add`";
    } else {
        mode.caught_by = "API keys, which everybody needs";
    }
    return mode;
}

bool is_limited(const TenantConfig& tenant) {
    return *tenant.tokens_per_minute > 0 || *tenant.requests_per_minute > 0;
}

FailureMode key_leaks(const ServiceConfig& config) {
    FailureMode mode = of_service(Failure::kKeyLeaks, config.gateway.keys.place);
    mode.rollback = "`sluice ctl keys revoke ID`: it ends within a second, without a restart";
    const auto unlimited = std::ranges::find_if_not(config.tenants, is_limited);
    if (config.tenants.empty()) {
        mode.advice =
            "add a [[tenant]] with tokens_per_minute for each key's owner: limits bound what a "
            "leaked key can cost";
    } else if (unlimited != config.tenants.end()) {
        mode.place = unlimited->name.place;
        mode.advice = fmt::format("set tokens_per_minute for tenant {}", *unlimited->name);
    } else {
        mode.caught_by = "the limits of its tenant, which bound the harm; records name the tenant";
    }
    return mode;
}

FailureMode tenant_flood(const ServiceConfig& config) {
    const GatewayConfig& gateway = config.gateway;
    FailureMode mode = of_service(Failure::kTenantFlood, gateway.queue_requests.place);
    mode.rollback =
        "by itself: who holds most of the queue gives way; lower its limits, or revoke its key";
    if (gateway.open->has_value()) {
        mode.place = gateway.open.place;
        mode.advice = "without keys everybody is one tenant, and nobody's share can be told";
    } else {
        mode.caught_by = "fair sharing between tenants, by their weights";
    }
    return mode;
}

FailureMode clients_overheard(const GatewayConfig& gateway) {
    FailureMode mode = of_service(Failure::kClientsOverheard, gateway.listen.place);
    mode.rollback = "give out other keys; what was read stays read";
    if (gateway.tls_key->has_value()) {
        mode.place = gateway.tls_key.place;
        mode.caught_by = "TLS";
    } else if (!others_reach(gateway.listen)) {
        mode.caught_by = "listening on loopback only";
    } else {
        mode.advice = "set tls_certificate and tls_key, or say what ends TLS in front of it";
    }
    return mode;
}

FailureMode admin_reached(const GatewayConfig& gateway) {
    FailureMode mode = of_service(Failure::kAdminReached, gateway.admin.place);
    mode.rollback = "`sluice ctl keys revoke ID` of the admin's key";
    if (!others_reach(gateway.admin)) {
        mode.caught_by = "listening on loopback only";
    } else if (*gateway.tls_admin) {
        mode.caught_by = "admin keys, over TLS";
    } else {
        mode.advice = "set tls_admin = true: admin keys cross the network in the clear";
    }
    return mode;
}

FailureMode certificate_expires(const GatewayConfig& gateway, const ServiceFacts& facts) {
    FailureMode mode = of_service(Failure::kCertificateExpires, gateway.tls_certificate.place);
    mode.rollback = "put new files in their place: they are read again within a second";
    const std::string certificate = gateway.tls_certificate->value_or("");
    for (const std::string& path : {certificate, gateway.tls_key->value_or("")}) {
        const auto broken = facts.broken_files.find(path);
        if (broken == facts.broken_files.end()) continue;
        mode.present = true;
        mode.advice = fmt::format("{}: {}", broken->first, broken->second);
        return mode;
    }
    const std::int64_t days = facts.certificate_days.value_or(0);
    mode.present = facts.certificate_days && days < kRenewalDays;
    mode.advice = days < 0
                      ? fmt::format("it ended {} days ago", -days)
                      : fmt::format("it ends in {} days: say what renews it, or what warns", days);
    return mode;
}

}  // namespace

void add_access_failures(const ServiceConfig& config, const ServiceFacts& facts,
                         std::vector<FailureMode>& modes) {
    const GatewayConfig& gateway = config.gateway;
    const bool keyed =
        !gateway.open->has_value() && (others_reach(gateway.listen) || facts.keys.value_or(0) > 0);
    modes.push_back(stranger_asks(gateway, facts));
    if (keyed) modes.push_back(key_leaks(config));
    modes.push_back(tenant_flood(config));
    modes.push_back(clients_overheard(gateway));
    modes.push_back(admin_reached(gateway));
    if (gateway.tls_certificate->has_value()) modes.push_back(certificate_expires(gateway, facts));
}

}  // namespace sluice::gates
