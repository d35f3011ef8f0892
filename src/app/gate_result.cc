#include "app/gate_result.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "app/command.h"

namespace sluice::app {

int print_report(const gates::GateReport& report, bool json) {
    print(json ? gates::to_json(report) + "\n" : gates::to_text(report));
    return report.passed() ? kDone : kFailed;
}

std::string utc_now() {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace sluice::app
