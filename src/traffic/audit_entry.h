#pragma once

// One line of the audit log: who changed which way traffic goes, when, and why.

#include <chrono>
#include <cstdint>
#include <string>

namespace sluice::traffic {

struct AuditEntry {
    std::chrono::system_clock::time_point at;
    std::string who;   ///< "admin 127.0.0.1:40312", "guard", "configuration", ...
    std::string what;  ///< "start", "apply", "rollback", "rearm", "lease_ended"
    std::string why;
    std::uint64_t version = 0;  ///< Of the plan that holds afterwards.
    std::string digest;         ///< Of that plan.
    bool latched = false;
    bool operator==(const AuditEntry&) const = default;
};

/// {"time":"2026-11-30T12:00:00.000Z","who",...}, without a newline.
[[nodiscard]] std::string to_json(const AuditEntry& entry);

/// "2026-11-30T12:00:00.123Z"
[[nodiscard]] std::string utc(std::chrono::system_clock::time_point time);

}  // namespace sluice::traffic
