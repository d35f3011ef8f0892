#include "sim/engine_fit.h"

#include <gtest/gtest.h>

#include <vector>

#include "trace/random.h"

namespace sluice::sim {
namespace {

std::vector<MeasuredRun> runs(const EngineParameters& parameters, double noise) {
    trace::Random random(4);
    std::vector<MeasuredRun> runs;
    const auto add = [&](MeasuredRun run) {
        run.microseconds = predicted_microseconds(parameters, run) *
                           (1.0 + noise * (2.0 * random.uniform() - 1.0));
        runs.push_back(run);
    };
    for (const std::uint64_t prompt : {16, 64, 512, 2'048, 8'192}) {
        MeasuredRun run{.steps = (prompt + 511) / 512};
        run.load.add_prefill(0, prompt, parameters.near_tokens);
        add(run);
    }
    for (const std::uint64_t batch : {1, 4, 16, 64}) {
        for (const std::uint64_t context : {32, 512, 1'024, 4'096}) {
            MeasuredRun run{.steps = 1};
            run.load.add_decode(batch, batch * context, parameters.decode_near);
            add(run);
        }
    }
    return runs;
}

constexpr EngineParameters kTruth{.step_us = 400,
                                  .prefill_row_us = 50,
                                  .prefill_attended_us = 0.01,
                                  .prefill_far_us = 0.02,
                                  .decode_row_us = 120,
                                  .decode_attended_us = 0.05,
                                  .decode_far_us = 0.08};

TEST(EngineFitTest, FindsTheCostsThatMadeTheTimes) {
    EngineParameters found;
    ASSERT_TRUE(fit_steps(runs(kTruth, 0.0), found).has_value());
    EXPECT_NEAR(found.step_us, kTruth.step_us, 1e-3);
    EXPECT_NEAR(found.prefill_row_us, kTruth.prefill_row_us, 1e-4);
    EXPECT_NEAR(found.prefill_attended_us, kTruth.prefill_attended_us, 1e-6);
    EXPECT_NEAR(found.prefill_far_us, kTruth.prefill_far_us, 1e-6);
    EXPECT_NEAR(found.decode_row_us, kTruth.decode_row_us, 1e-4);
    EXPECT_NEAR(found.decode_attended_us, kTruth.decode_attended_us, 1e-6);
    EXPECT_NEAR(found.decode_far_us, kTruth.decode_far_us, 1e-6);
}

TEST(EngineFitTest, NoiseMovesPredictionsByNoMoreThanItself) {
    EngineParameters found;
    const auto noisy = runs(kTruth, 0.1);
    ASSERT_TRUE(fit_steps(noisy, found).has_value());
    for (const MeasuredRun& run : noisy) {
        EXPECT_NEAR(predicted_microseconds(found, run) / predicted_microseconds(kTruth, run), 1.0,
                    0.12);
    }
}

TEST(EngineFitTest, NoCostIsNegative) {
    EngineParameters truth = kTruth;
    truth.decode_attended_us = 0.0;
    truth.decode_far_us = 0.0;
    truth.prefill_attended_us = 0.0;
    truth.prefill_far_us = 0.0;
    EngineParameters found;
    ASSERT_TRUE(fit_steps(runs(truth, 0.2), found).has_value());
    EXPECT_GE(found.prefill_attended_us, 0.0);
    EXPECT_GE(found.decode_attended_us, 0.0);
}

TEST(EngineFitTest, RunsThatTellNothingApartAreAnError) {
    EngineParameters found;
    EXPECT_FALSE(fit_steps({}, found).has_value());
    const std::vector<MeasuredRun> same(
        20, {.steps = 1, .load = {.prefill_rows = 5, .decode_rows = 1}, .microseconds = 100});
    EXPECT_FALSE(fit_steps(same, found).has_value());
    std::vector<MeasuredRun> nothing = runs(kTruth, 0.0);
    nothing.front().microseconds = 0.0;
    EXPECT_FALSE(fit_steps(nothing, found).has_value());
}

}  // namespace
}  // namespace sluice::sim
