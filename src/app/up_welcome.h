#pragma once

// What `--first-request` shows once a service is ready: an answer as it streams, then where it is,
// how to ask again and how to stop.

#include <string>

#include "app/first_request.h"
#include "app/service_state.h"
#include "app/up_report.h"

namespace sluice::app {

class Welcome {
public:
    /// `stop` is what the user is told to type.
    Welcome(ServiceState state, Output output, std::string stop);

    /// Blocks; returns an exit code, after one line on stderr if there was no answer.
    [[nodiscard]] int run();
    /// Any thread: `run` returns soon, and quietly.
    void cancel() { request_.cancel(); }

private:
    void print_how_to(const std::string& model) const;

    ServiceState state_;
    Output output_;
    std::string stop_;
    FirstRequest request_;
};

}  // namespace sluice::app
