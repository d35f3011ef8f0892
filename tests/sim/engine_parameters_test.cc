#include "sim/engine_parameters.h"

#include <gtest/gtest.h>

namespace sluice::sim {
namespace {

TEST(EngineParametersTest, WhatIsWrittenIsReadBackTheSame) {
    EngineParameters parameters;
    parameters.step_us = 1234.56789;
    parameters.prefill_attended_us = 1.25e-7;
    parameters.blocks = 17;
    parameters.order = PrefillOrder::kShortest;
    const auto again = parse_engine_parameters(to_toml(parameters), "engine.toml");
    ASSERT_TRUE(again.has_value()) << again.error().to_string();
    EXPECT_EQ(*again, parameters);
}

TEST(EngineParametersTest, WhatIsNotSaidKeepsItsDefault) {
    EngineParameters expected;
    expected.blocks = 5;
    EXPECT_EQ(*parse_engine_parameters("blocks = 5\n", "engine.toml"), expected);
}

TEST(EngineParametersTest, MistakesAreToldWithTheirLine) {
    for (const char* wrong :
         {"\nblocks = 0\n", "\nblocks = 1.5\n", "\norder = \"random\"\n", "\nstep_us = 0\n",
          "\nprefill_row_us = -1\n", "\nblock = 8\n", "\nstep_tokens = 1\n"}) {
        const auto parameters = parse_engine_parameters(wrong, "engine.toml");
        ASSERT_FALSE(parameters.has_value()) << wrong;
        EXPECT_EQ(parameters.error().place(), "engine.toml:2") << wrong;
    }
}

TEST(EngineParametersTest, AStepIsTheSumOfItsTerms) {
    const EngineParameters p{.step_us = 1,
                             .prefill_row_us = 10,
                             .prefill_attended_us = 100,
                             .prefill_far_us = 7,
                             .decode_row_us = 1'000,
                             .decode_attended_us = 10'000,
                             .decode_far_us = 3,
                             .encode_row_us = 100'000};
    StepLoad load{.encode_rows = 6};
    load.add_decode(1, 1, 3);
    load.add_decode(3, 4, 3);
    EXPECT_EQ(load.decode_far, 2u);
    // At positions 10 and 11: they look at 11 and 12, of which the last is not among the near ones.
    load.add_prefill(10, 2, 11);
    EXPECT_EQ(load.prefill_attended, 23u);
    EXPECT_EQ(load.prefill_far, 1u);
    EXPECT_DOUBLE_EQ(step_microseconds(p, load), 1 + 20 + 2'300 + 7 + 4'000 + 50'000 + 6 + 600'000);
}

}  // namespace
}  // namespace sluice::sim
