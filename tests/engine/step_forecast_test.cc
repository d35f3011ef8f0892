#include "engine/step_forecast.h"

#include <algorithm>
#include <random>

#include "tests/engine/krill.h"

namespace sluice::engine {
namespace {

using std::chrono::nanoseconds;

/// What a step takes on some machine, in nanoseconds.
struct Machine {
    double step = 0;
    double row = 0;
    double attended = 0;
    double logits = 0;

    [[nodiscard]] nanoseconds time(const StepWork& work) const {
        return nanoseconds(static_cast<std::int64_t>(step + row * static_cast<double>(work.rows) +
                                                     attended * static_cast<double>(work.attended) +
                                                     logits * static_cast<double>(work.logits)));
    }
};

constexpr Machine kFast{.step = 100'000, .row = 30'000, .attended = 40, .logits = 20'000};
constexpr Machine kSlow{.step = 2'000'000, .row = 900'000, .attended = 700, .logits = 100'000};

StepForecast krill_cost() { return StepForecast(krill::model("krill-q8_0.gguf")->parameters()); }

StepWork random_work(std::mt19937& random) {
    StepWork work;
    const std::size_t decodes = random() % 33;
    for (std::size_t i = 0; i < decodes; ++i) work.add_rows(random() % 4000, 1);
    work.logits = decodes;
    if (random() % 2 == 0 || decodes == 0) work.add_rows(random() % 8000, 1 + random() % 400);
    return work;
}

double error_of(const StepForecast& cost, const Machine& machine, const StepWork& work) {
    return static_cast<double>(cost.predict(work).count()) /
               static_cast<double>(machine.time(work).count()) -
           1.0;
}

TEST(StepForecastTest, AtSomePositionAttentionCostsAsMuchAsTheRestOfARow) {
    const StepForecast cost = krill_cost();
    const double none = static_cast<double>(cost.predict({}).count());
    const double row = static_cast<double>(cost.predict({.rows = 1}).count()) - none;
    const auto at = static_cast<std::size_t>(cost.attention_tokens());
    const double attention = static_cast<double>(cost.predict({.attended = at}).count()) - none;
    EXPECT_NEAR(attention / row, 1.0, 0.01);
    // Measured, it is some 500 (`sluice bench --fit`).
    EXPECT_GT(at, 250U);
    EXPECT_LT(at, 1'000U);
}

TEST(StepForecastTest, FollowsTheMachineAndItsChanges) {
    std::mt19937 random(1);
    StepForecast cost = krill_cost();
    for (const Machine& machine : {kFast, kSlow, kFast}) {
        for (int step = 0; step < 1'000; ++step) {
            const StepWork work = random_work(random);
            cost.learn(work, machine.time(work));
        }
        std::vector<double> errors;
        for (int step = 0; step < 200; ++step)
            errors.push_back(std::abs(error_of(cost, machine, random_work(random))));
        std::ranges::sort(errors);
        EXPECT_LT(errors[100], 0.1);
        EXPECT_LT(errors[190], 0.35);
    }
}

TEST(StepForecastTest, OneInterruptedStepMovesLittle) {
    std::mt19937 random(2);
    StepForecast cost = krill_cost();
    for (int step = 0; step < 400; ++step) {
        const StepWork work = random_work(random);
        cost.learn(work, kFast.time(work));
    }
    StepWork work;
    work.add_rows(100, 64);
    const nanoseconds before = cost.predict(work);
    cost.learn(work, 100 * kFast.time(work));
    EXPECT_LT(cost.predict(work), before * 5 / 4);
}

TEST(StepForecastTest, WhatItLearnsIsAFunctionOfWhatItIsTold) {
    std::mt19937 first(3);
    std::mt19937 second(3);
    StepForecast one = krill_cost();
    StepForecast other = krill_cost();
    for (int step = 0; step < 100; ++step) {
        const StepWork work = random_work(first);
        one.learn(work, kSlow.time(work));
        const StepWork same = random_work(second);
        other.learn(same, kSlow.time(same));
    }
    EXPECT_EQ(one.predict(random_work(first)), other.predict(random_work(second)));
}

TEST(StepForecastTest, RowsWithinIsTheMostThatFits) {
    const StepForecast cost = krill_cost();
    StepWork decodes;
    for (std::size_t i = 0; i < 8; ++i) decodes.add_rows(500, 1);
    for (const std::size_t first : {0U, 1'000U, 60'000U}) {
        const auto time = std::chrono::milliseconds(50);
        const std::size_t rows = cost.rows_within(time, decodes, first, 100'000);
        StepWork fits = decodes;
        fits.add_rows(first, rows);
        EXPECT_LE(cost.predict(fits), time);
        StepWork too_many = decodes;
        too_many.add_rows(first, rows + 1);
        EXPECT_GT(cost.predict(too_many), time);
    }
    EXPECT_EQ(cost.rows_within(std::chrono::nanoseconds(1), decodes, 0, 100), 0U);
    EXPECT_EQ(cost.rows_within(std::chrono::hours(1), decodes, 0, 100), 100U);
}

}  // namespace
}  // namespace sluice::engine
