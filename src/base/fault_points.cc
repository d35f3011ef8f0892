#include "base/fault_points.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/nearest.h"
#include "base/units.h"

namespace sluice {
namespace {

struct Flag {
    std::string_view name;
    bool FaultPoints::* field;
};
/// Those that are on or off.
constexpr auto kFlags = std::to_array<Flag>({{"other_sampling", &FaultPoints::other_sampling},
                                             {"wrong_model", &FaultPoints::wrong_model},
                                             {"pull_cut", &FaultPoints::pull_cut},
                                             {"pull_flip", &FaultPoints::pull_flip},
                                             {"pull_hang", &FaultPoints::pull_hang},
                                             {"disk_flip", &FaultPoints::disk_flip},
                                             {"disk_short", &FaultPoints::disk_short},
                                             {"disk_full", &FaultPoints::disk_full},
                                             {"disk_error", &FaultPoints::disk_error},
                                             {"node_cut", &FaultPoints::node_cut},
                                             {"node_hang", &FaultPoints::node_hang},
                                             {"node_flip", &FaultPoints::node_flip},
                                             {"node_other_key", &FaultPoints::node_other_key}});

constexpr auto kOthers = std::to_array<std::string_view>(
    {"slow_step", "disk_slow", "crash_after", "stall_after", "move_every"});

bool* flag(std::string_view name, FaultPoints& faults) {
    const auto* const found = std::ranges::find(kFlags, name, &Flag::name);
    return found == kFlags.end() ? nullptr : &(faults.*found->field);
}

std::chrono::milliseconds* delay(std::string_view name, FaultPoints& faults) {
    if (name == "slow_step") return &faults.slow_step;
    return name == "disk_slow" ? &faults.disk_slow : nullptr;
}

std::string nearest(std::string_view name) {
    std::vector<std::string_view> names(kOthers.begin(), kOthers.end());
    for (const Flag& each : kFlags) names.push_back(each.name);
    return did_you_mean(name, names);
}

/// Those that happen after a number of tokens.
std::optional<std::uint64_t>* count(std::string_view name, FaultPoints& faults) {
    if (name == "crash_after") return &faults.crash_after;
    if (name == "stall_after") return &faults.stall_after;
    return name == "move_every" ? &faults.move_every : nullptr;
}

std::unexpected<Error> wrong(std::string_view name, std::string_view wanted) {
    return std::unexpected(
        Error::invalid(fmt::format("{} needs {}", name, wanted), "SLUICE_FAULTS"));
}

Result<std::uint64_t> tokens(std::string_view name, std::string_view value) {
    std::uint64_t number = 0;
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(value.data(), end, number);
    if (error == std::errc() && stop == end) return number;
    return wrong(name, "a number of tokens");
}

Result<void> take(std::string_view name, std::string_view value, FaultPoints& faults) {
    if (auto* const longer = delay(name, faults)) {
        const auto time = parse_duration(value);
        if (!time) return wrong(name, "a duration, such as 20ms");
        *longer = *time;
    } else if (bool* const on = flag(name, faults)) {
        if (!value.empty()) return wrong(name, "no value");
        *on = true;
    } else if (auto* const after = count(name, faults)) {
        const auto number = tokens(name, value);
        if (!number) return std::unexpected(number.error());
        *after = *number;
    } else {
        return std::unexpected(Error::invalid(
            fmt::format("there is no fault '{}'{}", name, nearest(name)), "SLUICE_FAULTS"));
    }
    return {};
}

}  // namespace

Result<FaultPoints> parse_fault_points(std::string_view text) {
    FaultPoints faults;
    while (!text.empty()) {
        const std::string_view each = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), each.size() + 1));
        const std::size_t equals = std::min(each.find('='), each.size());
        const std::string_view value =
            equals == each.size() ? std::string_view() : each.substr(equals + 1);
        if (auto taken = take(each.substr(0, equals), value, faults); !taken)
            return std::unexpected(taken.error());
    }
    return faults;
}

Result<FaultPoints> fault_points_of_environment() {
    const char* const text = std::getenv("SLUICE_FAULTS");
    return parse_fault_points(text == nullptr ? "" : text);
}

}  // namespace sluice
