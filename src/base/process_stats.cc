#include "base/process_stats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace sluice {
namespace {

std::string read_file(const char* path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// Seconds since the epoch at which the machine started.
std::uint64_t boot_time() {
    std::istringstream stat(read_file("/proc/stat"));
    for (std::string line; std::getline(stat, line);) {
        if (line.starts_with("btime ")) return std::strtoull(line.c_str() + 6, nullptr, 10);
    }
    return 0;
}

std::uint64_t count_open_fds() {
    std::error_code error;
    std::uint64_t count = 0;
    for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
         it.increment(error)) {
        ++count;
    }
    return count > 0 ? count - 1 : 0;  // The listing's own descriptor.
}

}  // namespace

std::uint64_t stat_field(std::string_view stat, int number) {
    const std::size_t bracket = stat.rfind(')');
    if (bracket == std::string_view::npos) return 0;
    stat.remove_prefix(bracket + 1);
    for (int field = 2; field < number; ++field) {
        const std::size_t space = stat.find(' ');
        if (space == std::string_view::npos) return 0;
        stat.remove_prefix(space + 1);
    }
    std::uint64_t value = 0;
    std::from_chars(stat.data(), stat.data() + stat.size(), value);
    return value;
}

Result<ProcessStats> read_process_stats() {
    const std::string stat = read_file("/proc/self/stat");
    if (stat.empty()) return std::unexpected(Error(ErrorCode::kIo, "/proc is not readable"));
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    return ProcessStats{
        .cpu_seconds = static_cast<double>(stat_field(stat, 14) + stat_field(stat, 15)) / ticks,
        .resident_bytes = stat_field(stat, 24) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)),
        .virtual_bytes = stat_field(stat, 23),
        .open_fds = count_open_fds(),
        .max_fds = files.rlim_cur,
        .threads = stat_field(stat, 20),
        .start_time =
            static_cast<double>(boot_time()) + static_cast<double>(stat_field(stat, 22)) / ticks,
    };
}

}  // namespace sluice
