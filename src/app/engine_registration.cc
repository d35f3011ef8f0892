#include "app/engine_registration.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <utility>

#include "app/stable_pool.h"
#include "base/limits.h"
#include "base/units.h"
#include "discovery/etcd_announcer.h"
#include "discovery/http_announcer.h"

namespace sluice::app {
namespace {

constexpr std::string_view kEtcd = "etcd";

std::unexpected<Error> wrong(std::string message, std::string flag) {
    return std::unexpected(Error::invalid(std::move(message), std::move(flag)));
}

Result<std::chrono::seconds> lease_of(const RegistrationFlags& flags) {
    const auto lease = parse_duration(flags.lease);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
        lease.value_or(std::chrono::milliseconds(0)));
    if (seconds.count() >= 1 && seconds.count() <= limits::kRegistrationSeconds) return seconds;
    return wrong(fmt::format("must be from 1s to {}s", limits::kRegistrationSeconds), "--lease");
}

}  // namespace

void define_registration(CLI::App& command, RegistrationFlags& flags) {
    CLI::Option* const at =
        command
            .add_option(
                "--register", flags.at,
                "Tell a gateway that this worker is there: its admin address (its key in\n"
                "$SLUICE_ADMIN_KEY); or \"etcd\", as [discovery] of the configuration has it")
            ->type_name("URL");
    command.add_option("--pool", flags.pool, "Of which pool it is a worker; else the stable one")
        ->type_name("POOL")
        ->needs(at);
    command.add_option("--phase", flags.phase, "What it is for: full, prefill or decode")
        ->type_name("PHASE")
        ->capture_default_str()
        ->needs(at);
    command
        .add_option("--lease", flags.lease,
                    "How long that holds; it is said again three times as often")
        ->type_name("TIME")
        ->capture_default_str()
        ->needs(at);
    command
        .add_option("--advertise", flags.advertise,
                    "Where the gateway finds it, if not where it listens")
        ->type_name("URL")
        ->needs(at);
}

Result<std::optional<RegistrationPlan>> plan_registration(const RegistrationFlags& flags,
                                                          const ServiceConfig& config,
                                                          const std::string& address) {
    if (flags.at.empty()) return std::nullopt;
    RegistrationPlan plan;
    if (flags.at == kEtcd) {
        plan.etcd = {.endpoints = *config.discovery.etcd, .prefix = *config.discovery.prefix};
        if (plan.etcd.endpoints.empty())
            return wrong("the configuration names no etcd under [discovery]", "--register");
    } else {
        plan.admin = flags.at;
        if (const auto good = discovery::check_worker_url(plan.admin); !good)
            return wrong(fmt::format("\"{}\" is neither a gateway's admin address, like "
                                     "\"http://127.0.0.1:8081\", nor \"etcd\"",
                                     plan.admin),
                         "--register");
    }
    const auto phase = discovery::parse_phase(flags.phase);
    if (!phase) return wrong(phase.error().message(), "--phase");
    const auto lease = lease_of(flags);
    if (!lease) return std::unexpected(lease.error());
    const bool anywhere = address == "0.0.0.0" || address == "::";
    if (anywhere && flags.advertise.empty())
        return wrong("an engine that listens everywhere must say where it is found", "--advertise");
    if (!flags.advertise.empty())
        if (const auto good = discovery::check_worker_url(flags.advertise); !good)
            return wrong(good.error().message(), "--advertise");
    const std::string& pool = flags.pool.empty() ? *stable_pool(config).name : flags.pool;
    plan.announcement = {.worker = {.pool = pool, .url = flags.advertise, .phase = *phase},
                         .lease = *lease};
    return plan;
}

EngineRegistration::EngineRegistration(const RegistrationPlan& plan, const std::string& url)
    : client_(loop_) {
    discovery::Announcement announcement = plan.announcement;
    if (announcement.worker.url.empty()) announcement.worker.url = url;
    const char* const key = std::getenv("SLUICE_ADMIN_KEY");
    if (plan.admin.empty()) {
        announcer_ = std::make_unique<discovery::EtcdAnnouncer>(loop_, client_, plan.etcd,
                                                                std::move(announcement));
    } else {
        announcer_ = std::make_unique<discovery::HttpAnnouncer>(
            loop_, client_, plan.admin, key == nullptr ? "" : key, std::move(announcement));
    }
    thread_ = std::thread([this] {
        announcer_->start();
        loop_.run();
        announcer_.reset();  // Its calls belong to this thread.
    });
}

EngineRegistration::~EngineRegistration() {
    loop_.post([this] { announcer_->withdraw([this] { loop_.stop(); }); });
    thread_.join();
}

}  // namespace sluice::app
