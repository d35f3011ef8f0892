#pragma once

// What a configuration does not say itself, but what it names: whether the environment holds the keys,
// whether files can be read, how long a certificate lives, how much room there is for records.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/service_config.h"

namespace sluice::gates {

struct ServiceFacts {
    std::set<std::string> missing_variables;          ///< Of `api_key_env`.
    std::map<std::string, std::string> broken_files;  ///< Path to what is wrong with it.
    /// Until the first certificate of `tls_certificate` ends; negative afterwards.
    std::optional<std::int64_t> certificate_days;
    /// On the disk of the records' folder, with what they hold already.
    std::optional<std::uint64_t> record_room_bytes;
    /// How many API keys there are; nullopt if that is not known.
    std::optional<std::size_t> keys;
    std::size_t key_tenants = 0;  ///< How many tenants these keys are of.
};

/// Looks at files, disk and environment. Keys are left for the caller, who knows where they are.
[[nodiscard]] ServiceFacts collect_service_facts(const ServiceConfig& config);

}  // namespace sluice::gates
