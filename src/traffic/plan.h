#pragma once

// A traffic plan: which pool answers, which conversations another one answers, which are copied, and
// what sends everything back. A plain value; who may carry it out is for Controller to say.

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::traffic {

struct Split {
    std::string pool;
    double weight = 0.0;  ///< Share of the conversations, in (0, 1].
    std::chrono::milliseconds lease{};
    bool operator==(const Split&) const = default;
};

struct Shadow {
    std::string pool;    ///< The stable pool itself measures the noise of comparing (A/A).
    double share = 0.0;  ///< Of the conversations, in (0, 1].
    std::uint32_t max_concurrent = 0;
    bool operator==(const Shadow&) const = default;
};

enum class GuardMetric : std::uint8_t {
    kErrorRate,
    kTtftP50,
    kTtftP95,
    kTtftP99,
    kTbtP50,
    kTbtP95,
    kTbtP99,
    kInvalidOutputRate,
    kDiffersShare,
};

/// "error_rate", "ttft_p50", ...
[[nodiscard]] std::string_view to_string(GuardMetric metric);
/// All of them, in the order of the enumeration.
[[nodiscard]] std::span<const std::string_view> guard_metric_names();
[[nodiscard]] std::optional<GuardMetric> parse_guard_metric(std::string_view name);

/// Of a time, the share of requests that stays below it: 0.5, 0.95, 0.99; nullopt for a rate.
[[nodiscard]] std::optional<double> quantile_of(GuardMetric metric);
[[nodiscard]] bool is_ttft(GuardMetric metric);

/// Exactly one of `max` and `max_ratio` is set.
struct Guard {
    std::string pool;
    GuardMetric metric = GuardMetric::kErrorRate;
    std::optional<double> max;        ///< A share, or seconds.
    std::optional<double> max_ratio;  ///< To the stable pool's.
    std::uint32_t min_samples = 0;    ///< Of each pool that is looked at.
    std::chrono::milliseconds window{};
    bool operator==(const Guard&) const = default;
};

struct Plan {
    std::string stable;
    std::string salt;
    std::vector<Split> splits;
    std::vector<Shadow> shadows;
    std::vector<Guard> guards;

    [[nodiscard]] bool splits_to(std::string_view pool) const;
    [[nodiscard]] bool shadows_to(std::string_view pool) const;
    bool operator==(const Plan&) const = default;
};

/// The plan as [plan] tables; plan_check.h reads it back to an equal plan.
[[nodiscard]] std::string to_toml(const Plan& plan);

/// Equal for equal plans: 16 hexadecimal digits.
[[nodiscard]] std::string digest(const Plan& plan);

/// What has to change to get from one plan to the other, a line each for a person: "stable: a -> b",
/// "+ split candidate weight 0.05 lease 10m". Empty for equal plans.
[[nodiscard]] std::vector<std::string> difference(const Plan& from, const Plan& to);

}  // namespace sluice::traffic
