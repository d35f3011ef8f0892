#include "gates/service_facts.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "net/tls.h"

namespace sluice::gates {
namespace {

namespace fs = std::filesystem;

void look_at_key(const std::string& variable, ServiceFacts& facts) {
    if (variable.empty()) return;
    const char* const value = std::getenv(variable.c_str());
    if (value == nullptr || *value == '\0') facts.missing_variables.insert(variable);
}

void look_at_model(const std::string& model, ServiceFacts& facts) {
    if (model == "krill") return;
    if (::access(model.c_str(), R_OK) != 0) facts.broken_files[model] = std::strerror(errno);
}

/// Loading is the check: the same as at a start.
void look_at_tls(const GatewayConfig& gateway, ServiceFacts& facts) {
    if (const auto& bundle = *gateway.ca_bundle) {
        if (const auto trust = net::TlsTrust::load(*bundle); !trust)
            facts.broken_files[*bundle] = trust.error().message();
    }
    if (!*gateway.tls_certificate || !*gateway.tls_key) return;
    const auto identity = net::TlsIdentity::load(**gateway.tls_certificate, **gateway.tls_key);
    if (!identity) {
        const Error& error = identity.error();
        facts.broken_files[error.place()] = error.message();
        return;
    }
    const auto left = (*identity)->valid_until() - std::chrono::system_clock::now();
    facts.certificate_days = std::chrono::floor<std::chrono::days>(left).count();
}

/// Room on the disk of the folder, or of the nearest one above it that is there already.
void look_at_disk(const std::string& folder, ServiceFacts& facts) {
    std::error_code error;
    fs::path there = fs::absolute(folder, error);
    while (!error && !fs::exists(there, error) && there.has_relative_path())
        there = there.parent_path();
    struct statvfs disk{};
    if (::statvfs(there.c_str(), &disk) != 0) return;
    std::uint64_t room = std::uint64_t{disk.f_bavail} * disk.f_frsize;
    const auto held = fs::file_size(fs::path(folder) / "records.db", error);
    if (!error) room += held;
    facts.record_room_bytes = room;
}

}  // namespace

ServiceFacts collect_service_facts(const ServiceConfig& config) {
    ServiceFacts facts;
    for (const PoolConfig& pool : config.pools) {
        if (pool.is_native()) {
            look_at_model(*pool.native.model, facts);
        } else {
            look_at_key(*pool.upstream.api_key_env, facts);
        }
    }
    look_at_tls(config.gateway, facts);
    if (const auto& folder = *config.record.path) look_at_disk(*folder, facts);
    return facts;
}

}  // namespace sluice::gates
