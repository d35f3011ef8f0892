#include "sim/engine_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace sluice::sim {
namespace {

constexpr std::size_t kTerms = 7;
constexpr std::size_t kPrefillFar = 3;
constexpr std::size_t kDecodeFar = 6;
using Terms = std::array<double, kTerms>;

/// A step must take some time, or a simulation would never end.
constexpr double kLeastStep = 1.0;

Terms amounts(const MeasuredRun& run) {
    return {static_cast<double>(run.steps),
            static_cast<double>(run.load.prefill_rows),
            static_cast<double>(run.load.prefill_attended),
            static_cast<double>(run.load.prefill_far),
            static_cast<double>(run.load.decode_rows),
            static_cast<double>(run.load.decode_attended),
            static_cast<double>(run.load.decode_far)};
}

/// Least squares over the terms in `used`; the others are zero. Nullopt if they can't be told apart.
std::optional<Terms> solve(std::span<const MeasuredRun> runs,
                           const std::array<bool, kTerms>& used) {
    std::array<std::array<double, kTerms + 1>, kTerms> rows{};
    Terms scale{};  // Terms differ by many orders of magnitude.
    for (const MeasuredRun& run : runs) {
        const Terms amount = amounts(run);
        for (std::size_t i = 0; i < kTerms; ++i)
            scale[i] = std::max(scale[i], amount[i] / run.microseconds);
    }
    for (const MeasuredRun& run : runs) {
        Terms amount = amounts(run);
        for (std::size_t i = 0; i < kTerms; ++i)
            amount[i] = used[i] && scale[i] > 0.0 ? amount[i] / (run.microseconds * scale[i]) : 0.0;
        for (std::size_t i = 0; i < kTerms; ++i) {
            for (std::size_t j = 0; j < kTerms; ++j) rows[i][j] += amount[i] * amount[j];
            rows[i][kTerms] += amount[i];
        }
    }
    for (std::size_t i = 0; i < kTerms; ++i)
        if (!used[i]) rows[i][i] = 1.0;
    for (std::size_t column = 0; column < kTerms; ++column) {
        std::size_t pivot = column;
        for (std::size_t i = column + 1; i < kTerms; ++i)
            if (std::abs(rows[i][column]) > std::abs(rows[pivot][column])) pivot = i;
        if (std::abs(rows[pivot][column]) < 1e-12) return std::nullopt;
        std::swap(rows[column], rows[pivot]);
        for (std::size_t i = 0; i < kTerms; ++i) {
            if (i == column) continue;
            const double factor = rows[i][column] / rows[column][column];
            for (std::size_t j = column; j <= kTerms; ++j) rows[i][j] -= factor * rows[column][j];
        }
    }
    Terms terms{};
    for (std::size_t i = 0; i < kTerms; ++i)
        terms[i] = used[i] ? rows[i][kTerms] / rows[i][i] / scale[i] : 0.0;
    return terms;
}

}  // namespace

double predicted_microseconds(const EngineParameters& p, const MeasuredRun& run) {
    return step_microseconds(p, run.load) + p.step_us * (static_cast<double>(run.steps) - 1.0);
}

double fit_error(const EngineParameters& parameters, std::span<const MeasuredRun> runs) {
    double sum = 0.0;
    for (const MeasuredRun& run : runs) {
        const double off = predicted_microseconds(parameters, run) / run.microseconds - 1.0;
        sum += off * off;
    }
    return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(runs.size(), 1)));
}

Result<void> fit_steps(std::span<const MeasuredRun> runs, EngineParameters& parameters) {
    const Error vague =
        Error::invalid("the runs can't tell the costs apart: more and different ones are needed");
    const bool timed = std::ranges::all_of(
        runs, [](const MeasuredRun& run) { return run.microseconds > 0.0 && run.steps > 0; });
    if (runs.size() < kTerms || !timed) return std::unexpected(vague);
    std::array<bool, kTerms> used;
    used.fill(true);
    used[kPrefillFar] =
        std::ranges::any_of(runs, [](const MeasuredRun& run) { return run.load.prefill_far > 0; });
    used[kDecodeFar] =
        std::ranges::any_of(runs, [](const MeasuredRun& run) { return run.load.decode_far > 0; });
    // A cost below zero is noise: without it the others are sought again.
    for (std::size_t round = 0; round < kTerms; ++round) {
        const auto terms = solve(runs, used);
        if (!terms) return std::unexpected(vague);
        const auto least = std::ranges::min_element(*terms);
        if (*least < 0.0) {
            used[static_cast<std::size_t>(least - terms->begin())] = false;
            continue;
        }
        parameters.step_us = std::max((*terms)[0], kLeastStep);
        parameters.prefill_row_us = (*terms)[1];
        parameters.prefill_attended_us = (*terms)[2];
        parameters.prefill_far_us = (*terms)[kPrefillFar];
        parameters.decode_row_us = (*terms)[4];
        parameters.decode_attended_us = (*terms)[5];
        parameters.decode_far_us = (*terms)[kDecodeFar];
        if (parameters.prefill_row_us > 0.0) return {};
        break;
    }
    return std::unexpected(vague);
}

}  // namespace sluice::sim
