#pragma once

// Tells a gateway or etcd that an engine is there, beside the engine: on a thread and loop of its own, for
// as long as this lives.

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/service_config.h"
#include "discovery/announcer.h"
#include "discovery/etcd_options.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace CLI {
class App;
}

namespace sluice::app {

/// As the command line has it.
struct RegistrationFlags {
    std::string at;  ///< An admin address, or "etcd"; empty: nobody is told.
    std::string pool;
    std::string phase = "full";
    std::string lease = "15s";
    std::string advertise;
};
void define_registration(CLI::App& command, RegistrationFlags& flags);

/// What is told to whom.
struct RegistrationPlan {
    std::string admin;  ///< "http://127.0.0.1:8081"; empty: etcd.
    discovery::EtcdOptions etcd{};
    discovery::Announcement announcement{};  ///< Without an address, that of the engine is meant.
};

/// nullopt if nobody is to be told. `address` is where the engine listens.
[[nodiscard]] Result<std::optional<RegistrationPlan>> plan_registration(
    const RegistrationFlags& flags, const ServiceConfig& config, const std::string& address);

class EngineRegistration {
public:
    /// `url`: where the engine is, unless the plan says otherwise.
    EngineRegistration(const RegistrationPlan& plan, const std::string& url);
    /// Takes it back first, if that goes within a few seconds.
    ~EngineRegistration();
    EngineRegistration(const EngineRegistration&) = delete;
    EngineRegistration& operator=(const EngineRegistration&) = delete;

private:
    net::EventLoop loop_;
    net::HttpClient client_;
    std::unique_ptr<discovery::Announcer> announcer_;
    std::thread thread_;
};

}  // namespace sluice::app
