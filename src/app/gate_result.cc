#include "app/gate_result.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cerrno>
#include <ctime>
#include <fstream>
#include <sstream>

#include "app/command.h"

namespace sluice::app {

int print_report(const gates::GateReport& report, bool json) {
    print(json ? gates::to_json(report) + "\n" : gates::to_text(report));
    return report.passed() ? kDone : kFailed;
}

std::string utc_now() {
    return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

Result<std::string> read_text_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return std::unexpected(Error::io("cannot open", errno, path));
    std::ostringstream text;
    text << file.rdbuf();
    if (file.bad() || text.bad()) return std::unexpected(Error::io("cannot read", errno, path));
    return std::move(text).str();
}

Result<void> write_text_file(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file) return std::unexpected(Error::io("cannot write", errno, path));
    return {};
}

}  // namespace sluice::app
