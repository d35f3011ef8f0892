#include "traffic/comparison.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cmath>

#include "base/limits.h"

namespace sluice::traffic {
namespace {

namespace json = boost::json;

constexpr double kImpossible = 100.0;

std::optional<json::value> parse(std::string_view text) {
    boost::system::error_code error;
    json::value value = json::parse(text, error, {}, {.max_depth = limits::kJsonDepth});
    if (error) return std::nullopt;
    return value;
}

/// Equal as JSON: the order of keys and the spaces between do not count. What is no JSON is equal
/// only to itself.
bool json_equal(const std::string& left, const std::string& right) {
    if (left == right) return true;
    const auto a = parse(left);
    const auto b = parse(right);
    return a && b && *a == *b;
}

void compare_tools(const Answer& baseline, const Answer& candidate, Comparison& comparison) {
    const auto& a = baseline.tool_calls;
    const auto& b = candidate.tool_calls;
    if (!std::ranges::equal(a, b, {}, &ToolCall::name, &ToolCall::name)) {
        comparison.differences.emplace_back("tool_name");
    } else if (!std::ranges::equal(a, b, json_equal, &ToolCall::arguments, &ToolCall::arguments)) {
        comparison.differences.emplace_back("tool_arguments");
    }
}

void compare_tokens(const Answer& baseline, const Answer& candidate, Comparison& comparison) {
    const auto [a, b] = std::ranges::mismatch(baseline.output_ids, candidate.output_ids);
    if (a == baseline.output_ids.end() && b == candidate.output_ids.end()) return;
    comparison.differences.emplace_back("tokens");
    comparison.first_difference =
        static_cast<std::uint64_t>(std::distance(baseline.output_ids.begin(), a));
}

/// Of answers of which only a beginning was kept, the beginnings are compared.
bool text_equal(const std::string& a, const std::string& b, bool cut) {
    if (!cut) return a == b;
    const std::size_t size = std::min(a.size(), b.size());
    return std::string_view(a).substr(0, size) == std::string_view(b).substr(0, size);
}

std::optional<std::chrono::nanoseconds> delta(const std::optional<std::chrono::nanoseconds>& from,
                                              const std::optional<std::chrono::nanoseconds>& to) {
    if (!from || !to) return std::nullopt;
    return *to - *from;
}

}  // namespace

bool is_json(std::string_view text) { return parse(text).has_value(); }

Comparison compare(const Answer& baseline, const Answer& candidate, const Comparable& comparable) {
    Comparison comparison{.ttft_delta = delta(baseline.ttft, candidate.ttft),
                          .tbt_delta = delta(baseline.tbt, candidate.tbt)};
    auto& differences = comparison.differences;
    if (baseline.error != candidate.error) differences.emplace_back("error_class");
    // Half an answer differs from a whole one in everything, which says nothing more.
    if (!baseline.error.empty() || !candidate.error.empty()) return comparison;

    if (baseline.finish_reason != candidate.finish_reason)
        differences.emplace_back("finish_reason");
    const bool cut = baseline.cut || candidate.cut;
    if (comparable.json && !cut && is_json(baseline.text) != is_json(candidate.text))
        differences.emplace_back("json");
    if (!cut) compare_tools(baseline, candidate, comparison);
    if (comparable.text) {
        if (!text_equal(baseline.text, candidate.text, cut)) differences.emplace_back("text");
        if (!text_equal(baseline.reasoning, candidate.reasoning, cut))
            differences.emplace_back("reasoning");
    }
    if (comparable.tokens && !cut) compare_tokens(baseline, candidate, comparison);
    return comparison;
}

void add_logprobs(Comparison& comparison, const std::vector<float>& baseline,
                  const std::vector<float>& candidate, double tolerance) {
    double largest = baseline.size() == candidate.size() ? 0.0 : kImpossible;
    for (std::size_t i = 0; i < std::min(baseline.size(), candidate.size()); ++i) {
        const double a = baseline[i];
        const double b = candidate[i];
        const double distance = std::isfinite(a) && std::isfinite(b)   ? std::abs(a - b)
                                : std::isfinite(a) == std::isfinite(b) ? 0.0
                                                                       : kImpossible;
        largest = std::max(largest, std::min(distance, kImpossible));
    }
    comparison.logprob_delta = largest;
    if (largest > tolerance) comparison.differences.emplace_back("logprobs");
}

}  // namespace sluice::traffic
