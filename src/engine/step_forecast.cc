#include "engine/step_forecast.h"

#include <algorithm>

namespace sluice::engine {
namespace {

/// Multiply-adds per nanosecond of the first guess: a slow core. Too slow a guess makes the first
/// chunks short; too fast a one would hold decodes up.
constexpr double kGuessedRate = 10.0;
constexpr double kGuessedStep = 50'000.0;
constexpr double kGuessedLogit = 2.0;  ///< Nanoseconds to sample, per token of the vocabulary.
/// Share of a step's error that is corrected: the costs follow in some ten steps, and one step that
/// the system interrupted moves them little.
constexpr double kPace = 0.2;
/// An error beyond this factor says more about the machine than about the step.
constexpr double kErrorMost = 2.0;

double multiply_adds_of_row(const checkpoint::HyperParameters& p) {
    const double width = p.width;
    const double latents =
        p.heads * (double{1} * p.nope * p.kv_rank + double{1} * p.value * p.kv_rank);
    const double queries = p.heads * double{1} * p.key_length();
    const double attention = (p.q_rank > 0 ? (width + queries) * p.q_rank : width * queries) +
                             width * (p.kv_rank + p.rope) + latents +
                             double{1} * p.heads * p.value * width;
    const double experts = 3.0 * width * p.expert_ff * (p.experts_used + p.shared_experts);
    double sum = 0.0;
    for (std::uint32_t layer = 0; layer < p.layers; ++layer)
        sum += attention + (p.is_moe_layer(layer) ? experts : 3.0 * width * p.dense_ff);
    return sum;
}

}  // namespace

StepForecast::StepForecast(const checkpoint::HyperParameters& p)
    : unit_cost_{kGuessedStep, multiply_adds_of_row(p) / kGuessedRate,
                 double{1} * p.layers * p.heads * (2.0 * p.kv_rank + p.rope) / kGuessedRate,
                 double{1} * p.vocabulary * (p.width / kGuessedRate + kGuessedLogit)} {}

StepForecast::Terms StepForecast::amounts(const StepWork& work) {
    return {1.0, static_cast<double>(work.rows), static_cast<double>(work.attended),
            static_cast<double>(work.logits)};
}

std::chrono::nanoseconds StepForecast::predict(const StepWork& work) const {
    const Terms amount = amounts(work);
    double sum = 0.0;
    for (std::size_t term = 0; term < kTerms; ++term) sum += unit_cost_[term] * amount[term];
    return std::chrono::nanoseconds(static_cast<std::int64_t>(sum));
}

std::size_t StepForecast::rows_within(std::chrono::nanoseconds time, const StepWork& work,
                                      std::size_t first, std::size_t most) const {
    std::size_t fits = 0;
    std::size_t too_many = most + 1;
    while (fits + 1 < too_many) {
        const std::size_t count = fits + (too_many - fits) / 2;
        StepWork with = work;
        with.add_rows(first, count);
        (predict(with) <= time ? fits : too_many) = count;
    }
    return fits;
}

// Each unit cost is blamed for the error in proportion to its share of the prediction, so a cost is
// learnt from the steps in which it matters, needs no scale and never turns negative.
void StepForecast::learn(const StepWork& work, std::chrono::nanoseconds took) {
    const Terms amount = amounts(work);
    const auto predicted = static_cast<double>(std::max<std::int64_t>(predict(work).count(), 1));
    const double ratio =
        std::clamp(static_cast<double>(took.count()) / predicted, 1.0 / kErrorMost, kErrorMost);
    Terms share{};
    double squares = 0.0;
    for (std::size_t term = 0; term < kTerms; ++term) {
        share[term] = unit_cost_[term] * amount[term] / predicted;
        squares += share[term] * share[term];
    }
    // Divided by the squares, so that the same step again would be off by 1 - kPace of this error. The
    // quotient is below 2: no cost reaches 0.
    for (std::size_t term = 0; term < kTerms; ++term)
        unit_cost_[term] *= 1.0 + kPace * (ratio - 1.0) * share[term] / squares;
}

}  // namespace sluice::engine
