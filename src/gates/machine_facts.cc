#include "gates/machine_facts.h"

#include <poll.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "base/subprocess.h"

namespace sluice::gates {
namespace {

constexpr std::chrono::seconds kToolTime{5};
constexpr std::size_t kToolOutputBytes = 256 * 1024;

/// What a tool prints on stdout, or nothing if it is not there, fails or hangs.
std::optional<std::string> output_of(std::vector<std::string> argv) {
    auto pipe = make_pipe();
    if (!pipe) return std::nullopt;
    auto child = Subprocess::spawn(
        {.argv = std::move(argv), .fds = {{.parent = pipe->write.get(), .child = 1}}});
    pipe->write.reset();
    if (!child) return std::nullopt;
    std::string output;
    const auto end = std::chrono::steady_clock::now() + kToolTime;
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            end - std::chrono::steady_clock::now());
        pollfd waiting{.fd = pipe->read.get(), .events = POLLIN, .revents = 0};
        if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) <= 0)
            return std::nullopt;
        char buffer[4096];
        const ssize_t count = read(pipe->read.get(), buffer, sizeof(buffer));
        if (count <= 0) break;
        output.append(buffer, static_cast<std::size_t>(count));
        if (output.size() > kToolOutputBytes) return std::nullopt;
    }
    const auto status = child->wait(kToolTime);
    return status && status->ok() ? std::optional(std::move(output)) : std::nullopt;
}

std::string read_file(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
        text.remove_suffix(1);
    return text;
}

std::vector<std::string_view> split(std::string_view text, char mark) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t at = text.find(mark);
        parts.push_back(trimmed(text.substr(0, at)));
        if (at == std::string_view::npos) return parts;
        text.remove_prefix(at + 1);
    }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::vector<std::uint64_t> numbers(std::string_view version) {
    std::vector<std::uint64_t> parts;
    for (const std::string_view part : split(version, '.')) {
        std::uint64_t value = 0;
        std::from_chars(part.data(), part.data() + part.size(), value);
        parts.push_back(value);
    }
    return parts;
}

/// CANN says its version in a file, not by a tool.
std::string cann_version() {
    const char* home = std::getenv("ASCEND_TOOLKIT_HOME");
    const std::string folder = home ? home : "/usr/local/Ascend/ascend-toolkit/latest";
    return first_version(read_file(folder + "/version.cfg"));
}

}  // namespace

bool MachineFacts::has_feature(std::string_view name) const {
    return std::ranges::find(cpu_features, name) != cpu_features.end();
}

std::string first_version(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (!is_digit(text[i]) || (i > 0 && (is_digit(text[i - 1]) || text[i - 1] == '.')))
            continue;
        std::size_t end = i;
        while (end < text.size() && (is_digit(text[end]) || text[end] == '.')) ++end;
        const std::string_view version = text.substr(i, end - i);
        if (version.find('.') != std::string_view::npos && version.back() != '.')
            return std::string(version);
    }
    return {};
}

bool at_least(std::string_view version, std::string_view least) {
    if (version.empty()) return false;
    auto have = numbers(version);
    auto need = numbers(least);
    const std::size_t size = std::max(have.size(), need.size());
    have.resize(size);
    need.resize(size);
    return have >= need;
}

std::vector<Accelerator> parse_nvidia_smi(std::string_view text) {
    std::vector<Accelerator> found;
    for (const std::string_view line : split(text, '\n')) {
        const auto columns = split(line, ',');
        if (columns.size() != 4) continue;
        Accelerator gpu{.vendor = "nvidia",
                        .name = std::string(columns[0]),
                        .architecture = "sm_" + std::string(columns[1]),
                        .driver = std::string(columns[2])};
        std::erase(gpu.architecture, '.');
        std::uint64_t mebibytes = 0;
        std::from_chars(columns[3].data(), columns[3].data() + columns[3].size(), mebibytes);
        gpu.memory_bytes = mebibytes * 1024 * 1024;
        found.push_back(std::move(gpu));
    }
    return found;
}

std::vector<Accelerator> parse_npu_smi(std::string_view text) {
    std::vector<Accelerator> found;
    for (const std::string_view line : split(text, '\n')) {
        // | 0     950PR               | OK            | 98.2        45 ...
        const auto columns = split(line, '|');
        if (columns.size() < 3 || columns[1].empty() || !is_digit(columns[1].front())) continue;
        const auto words = split(columns[1], ' ');
        if (words.size() < 2 ||
            words.back().find_first_not_of("0123456789") == std::string_view::npos)
            continue;
        found.push_back({.vendor = "ascend",
                         .name = std::string(words.back()),
                         .architecture = std::string(words.back()),
                         .driver = {}});
    }
    return found;
}

void parse_cpuinfo(std::string_view text, MachineFacts& facts) {
    for (const std::string_view line : split(text, '\n')) {
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) continue;
        const std::string_view name = trimmed(line.substr(0, colon));
        const std::string_view value = trimmed(line.substr(colon + 1));
        if (name == "model name" && facts.cpu.empty()) facts.cpu = value;
        // "Features" is what ARM calls them.
        if ((name == "flags" || name == "Features") && facts.cpu_features.empty()) {
            for (const std::string_view flag : split(value, ' '))
                facts.cpu_features.emplace_back(flag);
        }
        if (name == "processor") ++facts.cpus;
    }
}

MachineFacts collect_machine_facts() {
    MachineFacts facts;
    utsname names{};
    if (uname(&names) == 0) {
        facts.system = names.sysname;
        facts.kernel = names.release;
        facts.machine = names.machine;
    }
    parse_cpuinfo(read_file("/proc/cpuinfo"), facts);
    facts.memory_bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    facts.gcc = first_version(output_of({"gcc", "-dumpfullversion"}).value_or(""));
    facts.python = first_version(output_of({"python3", "--version"}).value_or(""));
    const std::string nvcc = output_of({"nvcc", "--version"}).value_or("");
    const std::size_t release = nvcc.find("release ");
    if (release != std::string::npos) facts.cuda = first_version(nvcc.substr(release));
    facts.cann = cann_version();
    facts.accelerators = parse_nvidia_smi(
        output_of({"nvidia-smi", "--query-gpu=name,compute_cap,driver_version,memory.total",
                   "--format=csv,noheader,nounits"})
            .value_or(""));
    for (auto& npu : parse_npu_smi(output_of({"npu-smi", "info"}).value_or("")))
        facts.accelerators.push_back(std::move(npu));
    return facts;
}

std::string to_json(const MachineFacts& facts) {
    boost::json::array accelerators;
    for (const Accelerator& each : facts.accelerators) {
        accelerators.push_back({{"vendor", each.vendor},
                                {"name", each.name},
                                {"architecture", each.architecture},
                                {"driver", each.driver},
                                {"memory_bytes", each.memory_bytes}});
    }
    return boost::json::serialize(boost::json::object{{"system", facts.system},
                                                      {"kernel", facts.kernel},
                                                      {"machine", facts.machine},
                                                      {"cpu", facts.cpu},
                                                      {"cpus", facts.cpus},
                                                      {"memory_bytes", facts.memory_bytes},
                                                      {"gcc", facts.gcc},
                                                      {"python", facts.python},
                                                      {"cuda", facts.cuda},
                                                      {"cann", facts.cann},
                                                      {"accelerators", std::move(accelerators)}});
}

}  // namespace sluice::gates
