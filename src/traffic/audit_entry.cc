#include "traffic/audit_entry.h"

#include <fmt/chrono.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace sluice::traffic {

std::string utc(std::chrono::system_clock::time_point time) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
    const auto milliseconds = std::chrono::floor<std::chrono::milliseconds>(time - seconds);
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                       milliseconds.count());
}

std::string to_json(const AuditEntry& entry) {
    return boost::json::serialize(boost::json::object{{"time", utc(entry.at)},
                                                      {"who", entry.who},
                                                      {"what", entry.what},
                                                      {"why", entry.why},
                                                      {"version", entry.version},
                                                      {"digest", entry.digest},
                                                      {"latched", entry.latched}});
}

}  // namespace sluice::traffic
