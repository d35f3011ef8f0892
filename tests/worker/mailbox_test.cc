#include "worker/mailbox.h"

#include <gmock/gmock.h>

namespace sluice::worker {
namespace {

using ::testing::ElementsAre;

engine::Output output(std::vector<TokenId> tokens, std::uint64_t computed) {
    engine::Output result;
    result.tokens = std::move(tokens);
    result.computed_tokens = computed;
    return result;
}

engine::Output last(std::vector<TokenId> tokens) {
    engine::Output result = output(std::move(tokens), 100);
    result.finish = engine::Finish::kStop;
    result.matched_stop = 1;
    return result;
}

TEST(MailboxTest, WhatWasNotTakenIsMerged) {
    Mailbox mailbox(Delivery::kEveryStep);
    EXPECT_TRUE(mailbox.put(output({}, 64)));
    EXPECT_FALSE(mailbox.put(output({5}, 90)));
    EXPECT_FALSE(mailbox.put(output({6, 7}, 92)));
    const auto taken = mailbox.take();
    ASSERT_TRUE(taken.has_value());
    EXPECT_THAT(taken->tokens, ElementsAre(5, 6, 7));
    EXPECT_EQ(taken->computed_tokens, 92U);
    EXPECT_FALSE(taken->finish.has_value());
    EXPECT_FALSE(mailbox.take().has_value());
}

TEST(MailboxTest, TheLoopIsWokenOnceUntilItTakes) {
    Mailbox mailbox(Delivery::kEveryStep);
    EXPECT_TRUE(mailbox.put(output({5}, 1)));
    EXPECT_FALSE(mailbox.put(output({6}, 2)));
    ASSERT_TRUE(mailbox.take().has_value());
    EXPECT_TRUE(mailbox.put(last({7})));
    const auto taken = mailbox.take();
    ASSERT_TRUE(taken.has_value());
    EXPECT_EQ(taken->finish, engine::Finish::kStop);
    EXPECT_EQ(taken->matched_stop, 1);
}

TEST(MailboxTest, WhoWantsTheEndIsWokenAtTheEnd) {
    Mailbox mailbox(Delivery::kAtEnd);
    EXPECT_FALSE(mailbox.put(output({5}, 1)));
    EXPECT_FALSE(mailbox.put(output({6}, 2)));
    EXPECT_TRUE(mailbox.put(last({7})));
    EXPECT_THAT(mailbox.take()->tokens, ElementsAre(5, 6, 7));
}

// The engine repeats what it has of them in every step of a prefill.
TEST(MailboxTest, LogprobsOfTheInputComeOnceWithTheFirstToken) {
    const engine::PositionLogprobs first{.chosen = {.token = 3, .logprob = -1.0F}, .top = {}};
    const engine::PositionLogprobs second{.chosen = {.token = 4, .logprob = -2.0F}, .top = {}};
    Mailbox mailbox(Delivery::kEveryStep);
    engine::Output step = output({}, 64);
    step.input_logprobs = {first};
    EXPECT_TRUE(mailbox.put(step));
    step = output({9}, 128);
    step.input_logprobs = {first, second};
    EXPECT_FALSE(mailbox.put(step));
    EXPECT_FALSE(mailbox.put(output({10}, 129)));
    EXPECT_THAT(mailbox.take()->input_logprobs, ElementsAre(first, second));
}

}  // namespace
}  // namespace sluice::worker
