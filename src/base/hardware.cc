#include "base/hardware.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <fstream>
#include <thread>

namespace sluice {
namespace {

std::string model_name() {
    constexpr std::string_view kField = "model name";
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(kField)) continue;
        const std::size_t colon = line.find(": ");
        if (colon != std::string::npos) return line.substr(colon + 2, 128);
    }
    utsname names{};
    return ::uname(&names) == 0 ? names.machine : "unknown CPU";
}

}  // namespace

std::string cpu_name() {
    return fmt::format("{} x {}", std::thread::hardware_concurrency(), model_name());
}

}  // namespace sluice
