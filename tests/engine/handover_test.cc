// A request that one engine prefills and another decodes has the bits of one that a single engine
// answers, whatever becomes of its blocks on the way.

#include <algorithm>
#include <atomic>
#include <future>
#include <span>
#include <thread>

#include "tests/engine/carry.h"
#include "tests/engine/krill.h"

namespace sluice::engine {
namespace {

struct Setting {
    std::string name;
    std::string file;
    Speculation speculation;
};

class HandOverTest : public testing::TestWithParam<Setting> {
protected:
    static std::unique_ptr<Engine> engine() {
        return make_engine({.speculation = GetParam().speculation}, GetParam().file);
    }
};

INSTANTIATE_TEST_SUITE_P(Settings, HandOverTest,
                         testing::Values(Setting{"F16", "krill-f16.gguf", Speculation::kOff},
                                         Setting{"Q8", "krill-q8_0.gguf", Speculation::kOff},
                                         Setting{"Lookup", "krill-f16.gguf", Speculation::kLookup},
                                         Setting{"Mtp", "krill-f16.gguf", Speculation::kMtp}),
                         [](const auto& info) { return info.param.name; });

Request with_logprobs(std::size_t prompt, std::uint64_t seed, std::uint32_t tokens = 12) {
    auto ids = long_prompt(prompt, static_cast<std::uint32_t>(seed));
    ids.resize(prompt);
    Request request = sampled("r", std::move(ids), seed);
    request.sampling.max_new_tokens = tokens;
    request.return_logprobs = true;
    request.top_logprobs = 2;
    return request;
}

std::shared_ptr<Answer> answer_of(Engine& engine, Request request) {
    auto answer = send(engine, std::move(request));
    run(engine);
    EXPECT_TRUE(answer->done());
    return answer;
}

/// Both halves as one answer.
void expect_whole(const Answer& first, const Answer& rest, const Answer& whole) {
    std::vector<TokenId> tokens = first.tokens;
    tokens.insert(tokens.end(), rest.tokens.begin(), rest.tokens.end());
    ASSERT_EQ(tokens, whole.tokens);
    std::vector<PositionLogprobs> logprobs = first.logprobs;
    logprobs.insert(logprobs.end(), rest.logprobs.begin(), rest.logprobs.end());
    ASSERT_EQ(logprobs, whole.logprobs);
    ASSERT_EQ(rest.last.finish, whole.last.finish);
}

TEST_P(HandOverTest, EveryLengthOfAPromptSplitsWithTheSameBits) {
    const auto one = engine();
    const auto left = engine();
    const auto right = engine();
    // Each length of a tail, and full blocks; the other settings take turns.
    const std::size_t stride = GetParam().name == "F16" ? 1 : 9;
    for (std::size_t prompt = 1; prompt <= 200; prompt += prompt <= 130 ? stride : 7) {
        const Request request = with_logprobs(prompt, prompt);
        const auto whole = answer_of(*one, request);
        const Prefilled first = prefill(*left, request);
        ASSERT_NE(first.held, nullptr) << prompt;
        ASSERT_EQ(first.answer->tokens.size(), 1U);
        EXPECT_EQ(first.held->keys.size(), prompt / 64);
        EXPECT_EQ(first.held->tail_tokens, prompt % 64);
        const std::size_t imported = carry(*first.held, *right);
        const auto rest = answer_of(*right, decoding(request, first.answer->tokens, imported));
        SCOPED_TRACE(prompt);
        expect_whole(*first.answer, *rest, *whole);
        EXPECT_EQ(rest->last.cached_tokens, prompt);
        EXPECT_LE(rest->last.computed_tokens, rest->last.drafted + rest->tokens.size());
    }
}

TEST_P(HandOverTest, ASplitResumedAtEachTokenHasTheSameBits) {
    const auto one = engine();
    const auto left = engine();
    const auto right = engine();
    const Request request = with_logprobs(70, 3, 70);
    const auto whole = answer_of(*one, request);
    for (std::size_t given = 1; given + 1 < whole->tokens.size(); ++given) {
        Request resumed = request;
        resumed.resume_output_ids.assign(
            whole->tokens.begin(), whole->tokens.begin() + static_cast<std::ptrdiff_t>(given));
        const Prefilled first = prefill(*left, resumed);
        ASSERT_NE(first.held, nullptr);
        const std::size_t imported = carry(*first.held, *right);
        ASSERT_EQ(imported, 70 + given);
        std::vector<TokenId> so_far = resumed.resume_output_ids;
        so_far.insert(so_far.end(), first.answer->tokens.begin(), first.answer->tokens.end());
        const auto rest = answer_of(*right, decoding(request, so_far, imported));
        so_far.insert(so_far.end(), rest->tokens.begin(), rest->tokens.end());
        ASSERT_EQ(so_far, whole->tokens) << given;
        std::vector<PositionLogprobs> logprobs = first.answer->logprobs;
        logprobs.insert(logprobs.end(), rest->logprobs.begin(), rest->logprobs.end());
        const auto from = whole->logprobs.begin() + static_cast<std::ptrdiff_t>(given);
        ASSERT_TRUE(std::ranges::equal(logprobs, std::span(from, whole->logprobs.end()))) << given;
    }
}

TEST_P(HandOverTest, AStopTokenEndsASplitWhereItEndsTheWhole) {
    const auto one = engine();
    const auto left = engine();
    const auto right = engine();
    Request request = with_logprobs(90, 6, 40);
    const std::vector<TokenId> tokens = answer_of(*one, request)->tokens;
    for (const std::size_t at : {1U, 2U, 20U, 38U}) {
        request.sampling.stop_token_ids = {tokens[at]};
        const auto whole = answer_of(*one, request);
        ASSERT_EQ(whole->last.finish, Finish::kStop);
        if (whole->tokens.size() < 2) continue;  // It stands earlier, too.
        const Prefilled first = prefill(*left, request);
        ASSERT_NE(first.held, nullptr);
        const std::size_t imported = carry(*first.held, *right);
        const auto rest = answer_of(*right, decoding(request, first.answer->tokens, imported));
        SCOPED_TRACE(at);
        expect_whole(*first.answer, *rest, *whole);
        EXPECT_EQ(rest->last.matched_stop, tokens[at]);
    }
}

TEST_P(HandOverTest, ADecodeThatBeganLaterStartsFromTheSameBlocks) {
    const auto one = engine();
    const auto left = engine();
    const Request request = with_logprobs(100, 5, 40);
    const auto whole = answer_of(*one, request);
    const Prefilled first = prefill(*left, request);
    for (const std::size_t given : {2U, 10U, 27U, 28U, 29U, 39U}) {
        const auto right = engine();
        const std::size_t imported = carry(*first.held, *right);
        std::vector<TokenId> so_far(whole->tokens.begin(),
                                    whole->tokens.begin() + static_cast<std::ptrdiff_t>(given));
        const auto rest = answer_of(*right, decoding(request, so_far, imported));
        so_far.insert(so_far.end(), rest->tokens.begin(), rest->tokens.end());
        ASSERT_EQ(so_far, whole->tokens) << given;
        EXPECT_EQ(rest->last.cached_tokens, 100U);
    }
}

TEST_P(HandOverTest, WhatIsLostIsComputedWithTheSameBits) {
    const auto one = engine();
    const auto left = engine();
    const Request request = with_logprobs(200, 7);
    const auto whole = answer_of(*one, request);
    const Prefilled first = prefill(*left, request);
    for (const std::set<std::size_t>& lost :
         {std::set<std::size_t>{0}, {1}, {2}, {3}, {0, 3}, {1, 2}, {0, 1, 2, 3}}) {
        const auto right = engine();
        const std::size_t imported = carry(*first.held, *right, lost);
        const auto rest = answer_of(*right, decoding(request, first.answer->tokens, imported));
        expect_whole(*first.answer, *rest, *whole);
        std::size_t there = 0;  // Of the full blocks: a tail is of use right behind them alone.
        for (std::size_t block = 0; block < 3; ++block) there += lost.contains(block) ? 0 : 64;
        EXPECT_EQ(rest->last.cached_tokens, there);
        EXPECT_EQ(right->stats().blocks_held, 0U);
    }
}

TEST_P(HandOverTest, AnotherSaltImportsNothing) {
    const auto left = engine();
    const auto right = engine();
    const Request request = with_logprobs(100, 9);
    const Prefilled first = prefill(*left, request);
    const std::size_t imported = carry(*first.held, *right);
    Request other = decoding(request, first.answer->tokens, imported);
    other.salt.shared = "another";
    const auto rest = answer_of(*right, other);
    EXPECT_EQ(rest->last.cached_tokens, 0U);
    expect_whole(*first.answer, *rest, *answer_of(*left, request));
}

TEST(BlocksTest, AnotherModelImportsNothing) {
    const auto left = make_engine({}, "krill-f16.gguf");
    const auto right = make_engine({}, "krill-q8_0.gguf");
    const Request request = with_logprobs(100, 9);
    const Prefilled first = prefill(*left, request);
    const std::size_t imported = carry(*first.held, *right);
    const auto rest = answer_of(*right, decoding(request, first.answer->tokens, imported));
    EXPECT_EQ(rest->last.cached_tokens, 0U);
}

TEST(BlocksTest, AFirstTokenThatEndsTheAnswerHoldsNothing) {
    const auto engine = make_engine();
    Request request = with_logprobs(100, 2);
    request.sampling.max_new_tokens = 1;
    EXPECT_EQ(prefill(*engine, request).answer->last.finish, Finish::kLength);
    const TokenId stop = alone(request)[0];
    request.sampling.max_new_tokens = 10;
    request.sampling.stop_token_ids = {stop};
    const Prefilled stopped = prefill(*engine, request);
    EXPECT_EQ(stopped.answer->last.finish, Finish::kStop);
    EXPECT_EQ(stopped.held, nullptr);
    EXPECT_EQ(engine->stats().blocks_held, 0U);
}

TEST(BlocksTest, AHoldKeepsItsBlocksUntilItEnds) {
    const auto engine = make_engine({.pool_tokens = 640});
    const Request request = with_logprobs(200, 2);
    Prefilled first = prefill(*engine, request);
    EXPECT_EQ(engine->stats().blocks_held, 4U);
    std::vector<std::byte> before(first.held->blocks->bytes(64));
    first.held->blocks->read(0, 64, before);
    // Others use all the rest of the pool, again and again.
    for (std::uint32_t i = 0; i < 5; ++i)
        answer_of(*engine, greedy(std::to_string(i), long_prompt(300, i + 10), 8));
    std::vector<std::byte> after(before.size());
    first.held->blocks->read(0, 64, after);
    EXPECT_EQ(before, after);
    first.held = nullptr;
    engine->step();
    EXPECT_EQ(engine->stats().blocks_held, 0U);
    // Still there under their names.
    EXPECT_EQ(answer_of(*engine, request)->last.cached_tokens, 192U);
}

TEST(BlocksTest, AHoldMayOutliveItsEngine) {
    auto engine = make_engine();
    Prefilled first = prefill(*engine, with_logprobs(100, 2));
    std::vector<std::byte> before(first.held->blocks->bytes(64));
    first.held->blocks->read(0, 64, before);
    engine.reset();
    std::vector<std::byte> after(before.size());
    first.held->blocks->read(0, 64, after);
    EXPECT_EQ(before, after);
    first.held = nullptr;
}

TEST(BlocksTest, ATailGoesToOneRequestAndTheOtherComputesIt) {
    const auto left = make_engine();
    const auto right = make_engine();
    const Request request = with_logprobs(100, 4);
    const Prefilled first = prefill(*left, request);
    const std::size_t imported = carry(*first.held, *right);
    Request again = decoding(request, first.answer->tokens, imported);
    again.id = "again";
    const auto one = send(*right, decoding(request, first.answer->tokens, imported));
    const auto other = send(*right, again);
    run(*right);
    EXPECT_EQ(one->last.cached_tokens, 100U);
    EXPECT_EQ(other->last.cached_tokens, 64U);
    EXPECT_EQ(one->tokens, other->tokens);
    EXPECT_EQ(one->logprobs, other->logprobs);
}

TEST(BlocksTest, ThereIsNoRoomBeyondThePool) {
    const auto engine = make_engine({.pool_tokens = 640});
    std::shared_ptr<BlockHold> all;
    std::shared_ptr<BlockHold> more;
    engine->with_blocks([&](BlockDesk& desk) {
        all = desk.allocate(10);
        more = desk.allocate(1);
    });
    engine->step();
    ASSERT_NE(all, nullptr);
    EXPECT_EQ(more, nullptr);
    all = nullptr;
    engine->with_blocks([&](BlockDesk& desk) { more = desk.allocate(10); });
    engine->step();
    EXPECT_NE(more, nullptr);
}

TEST(BlocksTest, WhoFindsNoRoomWaitsForTheHoldToEnd) {
    const auto engine = make_engine({.pool_tokens = 640});
    std::promise<std::shared_ptr<BlockHold>> promised;
    engine->start();
    engine->with_blocks([&](BlockDesk& desk) { promised.set_value(desk.allocate(8)); });
    auto hold = promised.get_future().get();
    std::promise<void> ended;
    ASSERT_TRUE(engine->submit(greedy("a", long_prompt(200), 4), [&](const Output& output) {
        if (output.finish) ended.set_value();
    }));
    auto end = ended.get_future();
    // It is seen to wait: a command that came after it was carried out.
    std::promise<void> passed;
    engine->with_blocks([&](BlockDesk&) { passed.set_value(); });
    passed.get_future().wait();
    EXPECT_EQ(engine->stats().running, 0U);
    hold = nullptr;
    EXPECT_EQ(end.wait_for(std::chrono::seconds(60)), std::future_status::ready);
    engine->stop();
}

TEST(BlocksTest, FoundBlocksAreThoseThatAreThere) {
    const auto engine = make_engine();
    const Request request = with_logprobs(200, 2);
    answer_of(*engine, request);
    const kv::BlockKeyRoot& root = engine->key_root();
    auto keys = kv::chain_keys(kv::root_key(root), request.input_ids, 64);
    ASSERT_EQ(keys.size(), 3U);
    keys.insert(keys.begin() + 1, kv::BlockKey{});
    BlockDesk::Found found;
    engine->with_blocks([&](BlockDesk& desk) { found = desk.find(keys); });
    engine->step();
    keys.erase(keys.begin() + 1);
    ASSERT_EQ(found.names.size(), 3U);
    EXPECT_EQ(found.names[0],
              (NamedBlock{.key = keys[0], .parent = kv::root_key(root), .first = true}));
    EXPECT_EQ(found.names[1], (NamedBlock{.key = keys[1], .parent = keys[0]}));
    EXPECT_EQ(found.names[2], (NamedBlock{.key = keys[2], .parent = keys[1]}));
    EXPECT_EQ(found.blocks->size(), 3U);
    EXPECT_EQ(engine->stats().blocks_held, 3U);
}

/// Repeats what a pool tells.
class Mirror : public BlockObserver {
public:
    void stored(const NamedBlock& block) override {
        EXPECT_TRUE(blocks.emplace(block.key, block).second);
    }
    void removed(const kv::BlockKey& key) override { EXPECT_EQ(blocks.erase(key), 1U); }
    std::map<kv::BlockKey, NamedBlock> blocks;
};

TEST(BlocksTest, AnObserverKnowsEveryNameAtAnyTime) {
    Mirror mirror;
    const auto engine = make_engine({.pool_tokens = 1280, .block_observer = &mirror});
    for (std::uint32_t i = 0; i < 30; ++i) {
        Request request = greedy(std::to_string(i), long_prompt(70 + i * 13, i % 4), 20);
        send(*engine, request);
        if (i % 3 == 0) run(*engine);
        std::vector<NamedBlock> named;
        engine->with_blocks([&](BlockDesk& desk) { named = desk.named_blocks(); });
        engine->step();
        // The step came after the look; a second look sees what it named.
        engine->with_blocks([&](BlockDesk& desk) {
            named = desk.named_blocks();
            ASSERT_EQ(named.size(), mirror.blocks.size());
            for (const NamedBlock& block : named) ASSERT_EQ(mirror.blocks.at(block.key), block);
        });
        engine->step();
    }
    EXPECT_GT(engine->stats().evictions, 0U);
    EXPECT_FALSE(mirror.blocks.empty());
}

TEST(BlocksTest, ATailIsNoNewsForObservers) {
    Mirror mirror;
    const auto left = make_engine();
    const auto right = make_engine({.block_observer = &mirror});
    const Request request = with_logprobs(100, 4);
    const Prefilled first = prefill(*left, request);
    carry(*first.held, *right);
    right->step();
    EXPECT_EQ(mirror.blocks.size(), 1U);
    EXPECT_TRUE(mirror.blocks.contains(first.held->keys[0]));
    EXPECT_EQ(right->stats().blocks_kept, 2U);
}

// Blocks come and go beside steps: for the thread sanitizer, and for the bits.
TEST(BlocksTest, HoldsFromOtherThreadsDisturbNothing) {
    const Request request = with_logprobs(150, 8, 60);
    const auto expected = alone(request);
    const auto left = make_engine();
    const Prefilled first = prefill(*left, request);
    const auto engine = make_engine({.pool_tokens = 2560});
    engine->start();
    std::atomic<bool> over = false;
    std::thread others([&] {
        while (!over) {
            std::promise<std::shared_ptr<BlockHold>> promised;
            engine->with_blocks([&](BlockDesk& desk) { promised.set_value(desk.allocate(3)); });
            const auto room = promised.get_future().get();
            if (!room) continue;
            std::vector<std::byte> bytes(room->bytes(64));
            for (std::size_t i = 0; i < 3; ++i) room->write(i, 64, bytes);
        }
    });
    for (int round = 0; round < 5; ++round) {
        Request each = request;
        each.id = std::to_string(round);
        std::promise<std::vector<TokenId>> promised;
        std::vector<TokenId> tokens;
        ASSERT_TRUE(engine->submit(each, [&](const Output& output) {
            tokens.insert(tokens.end(), output.tokens.begin(), output.tokens.end());
            if (output.finish) promised.set_value(tokens);
        }));
        EXPECT_EQ(promised.get_future().get(), expected);
    }
    over = true;
    others.join();
    engine->stop();
}

}  // namespace
}  // namespace sluice::engine
