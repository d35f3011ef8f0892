// Planted faults do what they say, and nothing is planted unless asked for.

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "tests/engine/drive.h"
#include "tests/engine/krill.h"

namespace sluice::engine {
namespace {

std::vector<TokenId> with(const FaultPoints& faults, Request request) {
    const auto engine = make_engine({.faults = faults});
    const auto answer = send(*engine, std::move(request));
    run(*engine);
    return answer->tokens;
}

TEST(FaultTest, OtherSamplingDrawsWithAnotherSeed) {
    const auto prompt = krill::reference("story").prompt_ids;
    EXPECT_EQ(with({.other_sampling = true}, sampled("a", prompt, 1)),
              with({}, sampled("b", prompt, 2)));
}

TEST(FaultTest, AWrongModelSaysOtherThings) {
    const auto prompt = krill::reference("story").prompt_ids;
    EXPECT_NE(with({.wrong_model = true}, greedy("a", prompt)), with({}, greedy("b", prompt)));
}

TEST(FaultTest, ASlowStepChangesNoToken) {
    const auto prompt = krill::reference("story").prompt_ids;
    EXPECT_EQ(with({.slow_step = std::chrono::milliseconds(1)}, greedy("a", prompt, 4)),
              with({}, greedy("b", prompt, 4)));
}

TEST(FaultTest, ACrashEndsTheProcess) {
    const auto prompt = krill::reference("story").prompt_ids;
    EXPECT_DEATH((void)with({.crash_after = 2}, greedy("a", prompt, 4)), "");
}

}  // namespace
}  // namespace sluice::engine
