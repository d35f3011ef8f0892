#include "traffic/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "base/units.h"

namespace sluice::traffic {
namespace {

constexpr auto kMetrics =
    std::to_array<std::string_view>({"error_rate", "ttft_p50", "ttft_p95", "ttft_p99", "tbt_p50",
                                     "tbt_p95", "tbt_p99", "invalid_output_rate", "differs_share"});

std::string quoted(std::string_view text) {
    std::string literal = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') literal += '\\';
        literal += c;
    }
    return literal + '"';
}

/// TOML reads 1 as a whole number, and that is fine for all that is a number here.
std::string number(double value) { return fmt::format("{}", value); }

std::string limit_of(const Guard& guard) {
    return guard.max ? "max " + number(*guard.max) : "max_ratio " + number(*guard.max_ratio);
}

std::string describe(const Split& split) {
    return fmt::format("split {} weight {} lease {}", split.pool, number(split.weight),
                       format_duration(split.lease));
}

std::string describe(const Shadow& shadow) {
    return fmt::format("shadow {} share {} max_concurrent {}", shadow.pool, number(shadow.share),
                       shadow.max_concurrent);
}

std::string describe(const Guard& guard) {
    return fmt::format("guard {} {} {} min_samples {} window {}", guard.pool,
                       to_string(guard.metric), limit_of(guard), guard.min_samples,
                       format_duration(guard.window));
}

template <class Row>
void add_difference(const std::vector<Row>& from, const std::vector<Row>& to,
                    std::vector<std::string>& lines) {
    for (const Row& row : from)
        if (std::ranges::find(to, row) == to.end()) lines.push_back("- " + describe(row));
    for (const Row& row : to)
        if (std::ranges::find(from, row) == from.end()) lines.push_back("+ " + describe(row));
}

}  // namespace

std::string_view to_string(GuardMetric metric) {
    return kMetrics[static_cast<std::size_t>(metric)];
}

std::span<const std::string_view> guard_metric_names() { return kMetrics; }

std::optional<GuardMetric> parse_guard_metric(std::string_view name) {
    const auto* const found = std::ranges::find(kMetrics, name);
    if (found == kMetrics.end()) return std::nullopt;
    return static_cast<GuardMetric>(found - kMetrics.begin());
}

std::optional<double> quantile_of(GuardMetric metric) {
    switch (metric) {
        case GuardMetric::kTtftP50:
        case GuardMetric::kTbtP50: return 0.50;
        case GuardMetric::kTtftP95:
        case GuardMetric::kTbtP95: return 0.95;
        case GuardMetric::kTtftP99:
        case GuardMetric::kTbtP99: return 0.99;
        default: return std::nullopt;
    }
}

bool is_ttft(GuardMetric metric) {
    return metric == GuardMetric::kTtftP50 || metric == GuardMetric::kTtftP95 ||
           metric == GuardMetric::kTtftP99;
}

bool Plan::splits_to(std::string_view pool) const {
    return std::ranges::find(splits, pool, &Split::pool) != splits.end();
}

bool Plan::shadows_to(std::string_view pool) const {
    return std::ranges::find(shadows, pool, &Shadow::pool) != shadows.end();
}

std::string to_toml(const Plan& plan) {
    std::string text = fmt::format("[plan]\nstable = {}\n", quoted(plan.stable));
    if (!plan.salt.empty()) text += fmt::format("salt = {}\n", quoted(plan.salt));
    for (const Split& split : plan.splits) {
        text += fmt::format("\n[[plan.split]]\npool = {}\nweight = {}\nlease = {}\n",
                            quoted(split.pool), number(split.weight),
                            quoted(format_duration(split.lease)));
    }
    for (const Shadow& shadow : plan.shadows) {
        text += fmt::format("\n[[plan.shadow]]\npool = {}\nshare = {}\nmax_concurrent = {}\n",
                            quoted(shadow.pool), number(shadow.share), shadow.max_concurrent);
    }
    for (const Guard& guard : plan.guards) {
        const bool ratio = guard.max_ratio.has_value();
        text += fmt::format(
            "\n[[plan.guard]]\npool = {}\nmetric = {}\n{} = {}\nmin_samples = {}\nwindow = {}\n",
            quoted(guard.pool), quoted(to_string(guard.metric)), ratio ? "max_ratio" : "max",
            number(ratio ? *guard.max_ratio : *guard.max), guard.min_samples,
            quoted(format_duration(guard.window)));
    }
    return text;
}

std::string digest(const Plan& plan) { return to_hex(sha256(to_toml(plan))).substr(0, 16); }

std::vector<std::string> difference(const Plan& from, const Plan& to) {
    std::vector<std::string> lines;
    if (from.stable != to.stable)
        lines.push_back(fmt::format("stable: {} -> {}", from.stable, to.stable));
    if (from.salt != to.salt)
        lines.push_back(fmt::format("salt: \"{}\" -> \"{}\" (conversations are dealt out anew)",
                                    from.salt, to.salt));
    add_difference(from.splits, to.splits, lines);
    add_difference(from.shadows, to.shadows, lines);
    add_difference(from.guards, to.guards, lines);
    return lines;
}

}  // namespace sluice::traffic
