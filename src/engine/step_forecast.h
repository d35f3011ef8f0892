#pragma once

// Predicts how long a step will take, from how long steps took. The time of a step is a sum of terms:
// one for the step itself, and one in proportion to each thing it does. Their unit costs start as
// guesses from the model's size and are corrected after every step, so that they follow the machine
// and whatever else runs on it.
//
// Knows no clock: what it predicts is a function of what it was told.

#include <array>
#include <chrono>
#include <cstddef>

#include "checkpoint/hyper_parameters.h"

namespace sluice::engine {

/// What a step does, as far as it costs time.
struct StepWork {
    std::size_t rows = 0;      ///< Tokens that go through the model.
    std::size_t attended = 0;  ///< Positions that the rows' queries look at, all together.
    std::size_t logits = 0;    ///< Rows that are sampled or scored.

    /// Adds `count` rows at positions first, first + 1, ...
    void add_rows(std::size_t first, std::size_t count) {
        rows += count;
        attended += count * first + count * (count + 1) / 2;
    }
    bool operator==(const StepWork&) const = default;
};

class StepForecast {
public:
    static constexpr std::size_t kTerms = 4;
    /// Nanoseconds of a step, a row, an attended position, a row's logits.
    using Terms = std::array<double, kTerms>;

    /// First guesses for a model of this size on one slow core.
    explicit StepForecast(const checkpoint::HyperParameters& parameters);
    /// Others, above 0.
    explicit StepForecast(const Terms& guesses) : unit_cost_(guesses) {}

    [[nodiscard]] const Terms& unit_costs() const { return unit_cost_; }

    [[nodiscard]] std::chrono::nanoseconds predict(const StepWork& work) const;

    /// The position at which a row's attention is predicted to cost as much as the rest of it.
    [[nodiscard]] double attention_tokens() const { return unit_cost_[1] / unit_cost_[2]; }

    /// The most rows, at most `most`, that can join `work` as the next of a sequence whose first
    /// `first` tokens are computed, so that the step is predicted to take no longer than `time`.
    [[nodiscard]] std::size_t rows_within(std::chrono::nanoseconds time, const StepWork& work,
                                          std::size_t first, std::size_t most) const;

    /// A step with this work took this long.
    void learn(const StepWork& work, std::chrono::nanoseconds took);

private:
    [[nodiscard]] static Terms amounts(const StepWork& work);

    Terms unit_cost_{};
};

}  // namespace sluice::engine
