#pragma once

// The half of `sluice up --detach` that the user sees: starts the service in a session of its own
// and waits until it is ready or has failed.

#include <string>
#include <vector>

#include "app/service_state.h"
#include "base/error.h"

namespace sluice::app {

struct DetachedStart {
    int code = 0;
    ServiceState state{};  ///< If `code` is 0.
};

/// `argv` runs `sluice up` in the foreground and reports to descriptor 3. Prints the service's
/// complaint, or `log` as the place to look at. An interrupt ends the service that is starting.
[[nodiscard]] DetachedStart start_detached(std::vector<std::string> argv, const std::string& log);

/// The descriptor on which a detached service reports.
inline constexpr int kReportFd = 3;

}  // namespace sluice::app
