#include "base/fault_points.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/nearest.h"
#include "base/units.h"

namespace sluice {
namespace {

constexpr auto kNames = std::to_array<std::string_view>(
    {"slow_step", "other_sampling", "wrong_model", "crash_after", "stall_after", "pull_cut",
     "pull_flip", "pull_hang", "move_every"});

/// Those that are on or off.
bool* flag(std::string_view name, FaultPoints& faults) {
    if (name == "other_sampling") return &faults.other_sampling;
    if (name == "wrong_model") return &faults.wrong_model;
    if (name == "pull_cut") return &faults.pull_cut;
    if (name == "pull_flip") return &faults.pull_flip;
    return name == "pull_hang" ? &faults.pull_hang : nullptr;
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
    if (name == "slow_step") {
        const auto time = parse_duration(value);
        if (!time) return wrong(name, "a duration, such as 20ms");
        faults.slow_step = *time;
    } else if (bool* const on = flag(name, faults)) {
        if (!value.empty()) return wrong(name, "no value");
        *on = true;
    } else if (auto* const after = count(name, faults)) {
        const auto number = tokens(name, value);
        if (!number) return std::unexpected(number.error());
        *after = *number;
    } else {
        return std::unexpected(Error::invalid(
            fmt::format("there is no fault '{}'{}", name, did_you_mean(name, kNames)),
            "SLUICE_FAULTS"));
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
