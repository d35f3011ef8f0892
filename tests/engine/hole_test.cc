// Blocks that are missing in the middle of a chain are computed, and those behind them are not: with
// the same bits, whichever are missing and whenever the others come.

#include <algorithm>
#include <bit>
#include <span>

#include "tests/engine/carry.h"
#include "tests/engine/krill.h"

namespace sluice::engine {
namespace {

constexpr std::size_t kPrompt = 420;  // Six full blocks and a part.

Request story(std::string id = "r") {
    auto ids = long_prompt(kPrompt, 9);
    ids.resize(kPrompt);
    Request request = sampled(std::move(id), std::move(ids), 9);
    request.sampling.max_new_tokens = 8;
    request.return_logprobs = true;
    return request;
}

std::shared_ptr<Answer> answer_of(Engine& engine, Request request) {
    auto answer = send(engine, std::move(request));
    run(engine);
    EXPECT_TRUE(answer->done());
    return answer;
}

/// Puts those blocks of `held` that `wanted` has a bit for into the pool of `to`.
void carry_some(const HeldSequence& held, Engine& to, unsigned wanted) {
    to.with_blocks([&held, wanted](BlockDesk& desk) {
        const auto room = desk.allocate(held.keys.size());
        BlockDesk::Written written;
        for (std::size_t block = 0; block < held.keys.size(); ++block) {
            written.names.emplace_back();
            if ((wanted >> block & 1U) == 0) continue;
            std::vector<std::byte> rows(held.blocks->bytes(64));
            held.blocks->read(block, 64, rows);
            room->write(block, 64, rows);
            written.names.back() = held.name_of(block);
        }
        desk.keep(*room, written);
    });
}

void expect_same(const Answer& answer, const Answer& whole) {
    ASSERT_EQ(answer.tokens, whole.tokens);
    ASSERT_EQ(answer.logprobs, whole.logprobs);
}

TEST(HoleTest, AnySetOfBlocksSavesJustThose) {
    for (const Speculation speculation : {Speculation::kOff, Speculation::kMtp}) {
        const auto one = make_engine({.speculation = speculation}, "krill-f16.gguf");
        const auto whole = answer_of(*one, story());
        const Prefilled first = prefill(*make_engine({}, "krill-f16.gguf"), story());
        ASSERT_NE(first.held, nullptr);
        ASSERT_EQ(first.held->keys.size(), 6U);
        for (unsigned wanted = 0; wanted < 64; wanted += speculation == Speculation::kOff ? 1 : 7) {
            // Odd chunks, so that their ends don't fall on blocks' by themselves.
            const auto engine = make_engine({.running_max = 32,
                                             .step_tokens = 100,
                                             .prefill_chunk = 100,
                                             .speculation = speculation},
                                            "krill-f16.gguf");
            carry_some(*first.held, *engine, wanted);
            const auto answer = answer_of(*engine, story());
            SCOPED_TRACE(wanted);
            expect_same(*answer, *whole);
            EXPECT_EQ(answer->last.cached_tokens,
                      64U * static_cast<unsigned>(std::popcount(wanted)));
            EXPECT_EQ(engine->stats().cached_tokens, answer->last.cached_tokens);
        }
    }
}

TEST(HoleTest, WhatComesWhileThePromptIsComputedIsTaken) {
    const auto whole = answer_of(*make_engine(), story());
    const Prefilled first = prefill(*make_engine(), story());
    const auto engine = make_engine({.running_max = 32, .step_tokens = 50, .prefill_chunk = 50});
    const auto answer = send(*engine, story());
    ASSERT_TRUE(engine->step());
    carry_some(*first.held, *engine, 0b111100U);
    run(*engine);
    expect_same(*answer, *whole);
    EXPECT_EQ(answer->last.cached_tokens, 4U * 64);
}

TEST(HoleTest, TwoThatComeTogetherComputeACommonPrefixOnce) {
    const auto whole = answer_of(*make_engine(), story());
    const auto engine = make_engine({.running_max = 32, .step_tokens = 64, .prefill_chunk = 64});
    const auto left = send(*engine, story("a"));
    const auto right = send(*engine, story("b"));
    run(*engine);
    expect_same(*left, *whole);
    expect_same(*right, *whole);
    EXPECT_GE(left->last.cached_tokens + right->last.cached_tokens, 5U * 64);
}

TEST(HoleTest, InputThatIsScoredIsComputed) {
    Request scored = story();
    scored.logprob_start = 100;
    const auto whole = answer_of(*make_engine(), scored);
    const Prefilled first = prefill(*make_engine(), story());
    const auto engine = make_engine();
    carry_some(*first.held, *engine, 0b111111U);
    const auto answer = answer_of(*engine, scored);
    expect_same(*answer, *whole);
    EXPECT_EQ(answer->last.input_logprobs, whole->last.input_logprobs);
    EXPECT_EQ(answer->last.cached_tokens, 64U);
}

}  // namespace
}  // namespace sluice::engine
