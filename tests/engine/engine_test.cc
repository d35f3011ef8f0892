#include "engine/engine.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "tests/engine/broken_rules.h"
#include "tests/engine/drive.h"
#include "tests/engine/krill.h"

namespace sluice::engine {
namespace {

TEST(EngineTest, GreedyTextOfTheF16FileIsTheReferences) {
    const auto engine = make_engine();
    std::vector<std::pair<krill::Reference, std::shared_ptr<Answer>>> answers;
    for (krill::Reference& reference : krill::references()) {
        const auto answer = send(*engine, greedy(reference.name, reference.prompt_ids));
        answers.emplace_back(std::move(reference), answer);
    }
    run(*engine);
    for (const auto& [reference, answer] : answers) {
        EXPECT_EQ(answer->tokens, reference.greedy_ids) << reference.name;
        const bool ends = reference.greedy_ids.back() == 1;
        EXPECT_EQ(answer->last.finish, ends ? Finish::kStop : Finish::kLength) << reference.name;
        if (ends) {
            EXPECT_EQ(answer->last.matched_stop, 1);
        }
    }
}

TEST(EngineTest, TheSameSeedGivesTheSameTokensAndAnotherGivesOthers) {
    const auto prompt = krill::reference("story").prompt_ids;
    EXPECT_EQ(alone(sampled("a", prompt, 1)), alone(sampled("b", prompt, 1)));
    EXPECT_NE(alone(sampled("a", prompt, 1)), alone(sampled("a", prompt, 2)));
}

TEST(EngineTest, SaltsKeepPrefixesApart) {
    const auto engine = make_engine();
    Request first = greedy("a", long_prompt(200), 2);
    first.salt.shared = "tenant-1";
    Request second = first;
    second.id = "b";
    second.salt.shared = "tenant-2";
    send(*engine, first);
    run(*engine);
    const auto answer = send(*engine, second);
    run(*engine);
    EXPECT_EQ(answer->last.cached_tokens, 0U);
}

TEST(EngineTest, ASaltOfItsOwnNarrowsOnlyWhatLiesBehindItsStart) {
    const auto engine = make_engine();
    const auto cached = [&engine](std::string id, std::string own, std::size_t from) {
        Request request = greedy(std::move(id), long_prompt(300), 2);
        request.salt = {.shared = "t", .own = std::move(own), .own_from = from};
        const auto answer = send(*engine, request);
        run(*engine);
        return answer->last.cached_tokens;
    };
    EXPECT_EQ(cached("a", "anna", 150), 0U);
    EXPECT_EQ(cached("b", "ben", 150), 128U);
    EXPECT_EQ(cached("c", "anna", 150), 256U);
    EXPECT_EQ(cached("d", "ben", 150), 256U);
    EXPECT_EQ(cached("e", "", 0), 128U);
}

TEST(EngineTest, AbortFreesEverythingBeforeTheNextStep) {
    const auto engine = make_engine({.running_max = 64, .step_tokens = 64, .prefill_chunk = 64});
    const auto prefilling = send(*engine, greedy("p", long_prompt(1000)));
    const auto decoding = send(*engine, greedy("d", {0, 4083, 373}));
    ASSERT_TRUE(engine->step());
    EXPECT_FALSE(prefilling->done());
    engine->abort("p");
    engine->abort("d");
    engine->step();
    EXPECT_EQ(prefilling->last.finish, Finish::kAborted);
    EXPECT_EQ(decoding->last.finish, Finish::kAborted);
    EXPECT_EQ(engine->stats().running, 0U);
    EXPECT_EQ(engine->stats().blocks_held, 0U);
}

TEST(EngineTest, WhatHasComeCountsBeforeAnyStep) {
    const auto engine = make_engine();
    const auto answer = send(*engine, greedy("d", {0, 4083, 373}, 1));
    EXPECT_EQ(engine->stats().live, 1U);
    EXPECT_EQ(engine->stats().running, 0U);
    run(*engine);
    EXPECT_EQ(engine->stats().live, 0U);
}

TEST(EngineTest, APrefillReportsItsProgress) {
    const auto engine = make_engine({.running_max = 64, .step_tokens = 64, .prefill_chunk = 64});
    const auto answer = send(*engine, greedy("p", long_prompt(256), 1));
    std::vector<std::uint64_t> computed;
    while (engine->step()) computed.push_back(answer->last.computed_tokens);
    EXPECT_EQ(computed, (std::vector<std::uint64_t>{64, 128, 192, 256}));
    EXPECT_EQ(answer->outputs, 4U);
}

TEST(EngineTest, StopTokensEndAnAnswerAndMinTokensHoldThemBack) {
    const auto reference = krill::reference("capital");  // ... Paris(1831) .(16) end(1)
    Request request = greedy("a", reference.prompt_ids);
    request.sampling.stop_token_ids = {1831};
    const auto engine = make_engine();
    const auto stopped = send(*engine, request);
    run(*engine);
    EXPECT_EQ(stopped->tokens.back(), 1831);
    EXPECT_EQ(stopped->last.matched_stop, 1831);

    request.id = "b";
    request.sampling.min_new_tokens = 20;
    const auto longer = send(*engine, request);
    run(*engine);
    EXPECT_GE(longer->tokens.size(), 20U);
    EXPECT_EQ(std::ranges::count(std::span(longer->tokens).first(19), 1831), 0);
}

TEST(EngineTest, LogprobsAreThoseOfTheUnchangedDistribution) {
    const auto reference = krill::reference("capital");
    Request request = greedy("a", reference.prompt_ids);
    request.return_logprobs = true;
    request.top_logprobs = 5;
    request.logprob_start = 0;
    request.sampling.logit_bias = {{301, 50.0F}};  // Changes the pick, not the probabilities.
    request.sampling.max_new_tokens = 3;
    const auto engine = make_engine();
    const auto answer = send(*engine, request);
    run(*engine);
    ASSERT_EQ(answer->logprobs.size(), 3U);
    for (const PositionLogprobs& position : answer->logprobs) {
        EXPECT_EQ(position.chosen.token, 301);
        ASSERT_EQ(position.top.size(), 5U);
        EXPECT_TRUE(std::ranges::is_sorted(position.top, std::greater{}, &TokenLogprob::logprob));
        EXPECT_LE(position.chosen.logprob, position.top.front().logprob);
    }
    ASSERT_EQ(answer->input_logprobs.size(), reference.prompt_ids.size() - 1);
    for (std::size_t i = 0; i < answer->input_logprobs.size(); ++i)
        EXPECT_EQ(answer->input_logprobs[i].chosen.token, reference.prompt_ids[i + 1]);
}

// Given tokens score the same whether they were drawn here or are handed in: teacher forcing.
TEST(EngineTest, GivenTokensScoreAsDrawnOnes) {
    const auto reference = krill::reference("turns");
    Request drawn = greedy("a", reference.prompt_ids);
    drawn.return_logprobs = true;
    const auto engine = make_engine();
    const auto answer = send(*engine, drawn);
    run(*engine);

    Request forced = greedy("b", reference.prompt_ids, 1);
    forced.input_ids.insert(forced.input_ids.end(), answer->tokens.begin(), answer->tokens.end());
    forced.logprob_start = static_cast<std::int64_t>(reference.prompt_ids.size());
    const auto scores = send(*engine, forced);
    run(*engine);
    EXPECT_EQ(scores->input_logprobs, answer->logprobs);
}

TEST(EngineTest, HigherPrioritiesAreAdmittedFirst) {
    const auto engine = make_engine({.running_max = 1});
    std::vector<std::string> finished;
    for (const int priority : {0, 2, 1}) {
        Request request = greedy(std::to_string(priority), {0, 4083, 373}, 2);
        request.priority = priority;
        ASSERT_TRUE(engine->submit(request, [&finished, priority](const Output& output) {
            if (output.finish) finished.push_back(std::to_string(priority));
        }));
    }
    run(*engine);
    EXPECT_EQ(finished, (std::vector<std::string>{"2", "1", "0"}));
}

TEST(EngineTest, WhatCannotRunIsRefusedWithItsReason) {
    const auto engine = make_engine({.pool_tokens = 1024, .running_max = 1, .waiting_max = 1});
    const auto refused = [&](Request request) {
        const auto result = engine->submit(std::move(request), [](const Output&) { FAIL(); });
        EXPECT_FALSE(result.has_value());
        return result ? Error::invalid("") : result.error();
    };
    EXPECT_EQ(refused(greedy("a", {})).place(), "input_ids");
    EXPECT_EQ(refused(greedy("a", {4096})).place(), "input_ids[0]");
    EXPECT_EQ(refused(greedy("a", {1, -1})).place(), "input_ids[1]");
    const Error overflow = refused(greedy("a", long_prompt(1000), 100));
    EXPECT_NE(overflow.message().find("1000"), std::string::npos);
    EXPECT_NE(overflow.message().find("1024"), std::string::npos);

    send(*engine, greedy("a", {1}, 2));
    EXPECT_EQ(refused(greedy("a", {1}, 2)).place(), "id");
    send(*engine, greedy("b", {1}, 2));
    EXPECT_EQ(refused(greedy("c", {1}, 2)).code(), ErrorCode::kExhausted);
    run(*engine);
    EXPECT_EQ(engine->stats().blocks_held, 0U);
}

TEST(EngineTest, ARequestIsPreparedWhileAStepComputes) {
    const auto prompt = long_prompt(200);
    const auto engine = make_engine({.running_max = 64, .step_tokens = 64, .prefill_chunk = 64});
    const auto first = send(*engine, sampled("first", prompt, 1));
    run(*engine);
    const auto other = send(*engine, sampled("other", long_prompt(300, 1), 1));
    std::shared_ptr<Answer> second;
    test::in_next_pass([&] {
        second = send(*engine, sampled("second", prompt, 1));
        engine->abort("other");
    });
    ASSERT_TRUE(engine->step());
    EXPECT_EQ(engine->stats().prepared, 1U);
    EXPECT_EQ(engine->stats().running, 2U);
    run(*engine);
    EXPECT_EQ(other->last.finish, Finish::kAborted);
    EXPECT_EQ(second->last.cached_tokens, 192U);
    EXPECT_EQ(second->tokens, first->tokens);
    EXPECT_EQ(engine->stats().blocks_held, 0U);
}

TEST(EngineTest, AbortingWhatWasJustPreparedFreesIt) {
    const auto engine = make_engine({.running_max = 64, .step_tokens = 64, .prefill_chunk = 64});
    send(*engine, greedy("long", long_prompt(300), 2));
    std::shared_ptr<Answer> second;
    test::in_next_pass([&] {
        second = send(*engine, greedy("second", long_prompt(100, 2), 2));
        engine->abort("second");
    });
    ASSERT_TRUE(engine->step());
    EXPECT_FALSE(second->done());
    ASSERT_TRUE(engine->step());
    EXPECT_EQ(second->last.finish, Finish::kAborted);
    run(*engine);
    EXPECT_EQ(engine->stats().blocks_held, 0U);
}

// The default: what `sluice up` promises a worker.
TEST(EngineTest, SixtyFourRunAtOnceAndEachStepGivesEachAToken) {
    const auto engine = make_engine({}, "krill-q8_0.gguf");
    std::vector<std::shared_ptr<Answer>> answers;
    for (std::uint32_t i = 0; i < 64; ++i) {
        Request request = greedy(std::to_string(i), long_prompt(4, i), 12);
        request.sampling.ignore_eos = true;
        answers.push_back(send(*engine, std::move(request)));
    }
    for (std::size_t step = 1; step <= 12; ++step) {
        ASSERT_TRUE(engine->step());
        for (const auto& answer : answers) ASSERT_EQ(answer->tokens.size(), step);
    }
    for (const auto& answer : answers) EXPECT_TRUE(answer->done());
}

TEST(EngineTest, AThreadOfItsOwnServesManyClientsAndStopsCleanly) {
    const auto engine = make_engine({.threads = 2});
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t finished = 0;
    std::size_t aborted = 0;
    constexpr std::size_t kRequests = 60;
    const auto sink = [&](const Output& output) {
        if (!output.finish) return;
        const std::lock_guard lock(mutex);
        ++finished;
        if (output.finish == Finish::kAborted) ++aborted;
        changed.notify_all();
    };
    engine->start();
    std::vector<std::thread> clients;
    for (std::size_t client = 0; client < 3; ++client) {
        clients.emplace_back([&, client] {
            for (std::size_t i = client; i < kRequests; i += 3) {
                const std::string id = std::to_string(i);
                EXPECT_TRUE(engine->submit(sampled(id, long_prompt(10 + i), i), sink));
                if (i % 4 == 0) engine->abort(id);
            }
        });
    }
    for (std::thread& client : clients) client.join();
    {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return finished == kRequests; });
    }
    EXPECT_GT(aborted, 0U);
    EXPECT_TRUE(engine->submit(greedy("last", long_prompt(4000)), sink));
    engine->stop();
    EXPECT_EQ(finished, kRequests + 1);
    EXPECT_EQ(engine->stats().blocks_held, 0U);
}

}  // namespace
}  // namespace sluice::engine
