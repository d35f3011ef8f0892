#include "engine/engine.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "tests/engine/krill.h"

namespace sluice::engine {
namespace {

std::unique_ptr<Engine> make_engine(EngineOptions options = {},
                                    const std::string& file = "krill-f16.gguf") {
    if (options.pool_tokens == EngineOptions{}.pool_tokens) options.pool_tokens = 16'384;
    auto engine = Engine::create(krill::model(file), std::move(options));
    EXPECT_TRUE(engine.has_value());
    return std::move(*engine);
}

/// What came out of one request.
struct Answer {
    std::vector<TokenId> tokens;
    std::vector<PositionLogprobs> logprobs;
    std::vector<PositionLogprobs> input_logprobs;
    Output last;
    std::size_t outputs = 0;

    [[nodiscard]] bool done() const { return last.finish.has_value(); }
};

/// Sends a request whose outputs are gathered in the returned answer.
std::shared_ptr<Answer> send(Engine& engine, Request request) {
    auto answer = std::make_shared<Answer>();
    const auto submitted = engine.submit(std::move(request), [answer](const Output& output) {
        EXPECT_FALSE(answer->done()) << "an output came after the end";
        answer->tokens.insert(answer->tokens.end(), output.tokens.begin(), output.tokens.end());
        answer->logprobs.insert(answer->logprobs.end(), output.logprobs.begin(),
                                output.logprobs.end());
        if (!output.tokens.empty() && !output.input_logprobs.empty())
            answer->input_logprobs = output.input_logprobs;
        answer->last = output;
        ++answer->outputs;
    });
    EXPECT_TRUE(submitted.has_value()) << submitted.error().to_string();
    return answer;
}

void run(Engine& engine) {
    while (engine.step()) {
    }
}

Request greedy(const std::string& id, std::vector<TokenId> prompt, std::uint32_t tokens = 96) {
    Request request;
    request.id = id;
    request.input_ids = std::move(prompt);
    request.sampling.max_new_tokens = tokens;
    request.sampling.temperature = 0.0F;
    return request;
}

/// Everything that makes sampling depend on history: penalties, filters, a seed.
Request sampled(const std::string& id, std::vector<TokenId> prompt, std::uint64_t seed) {
    Request request = greedy(id, std::move(prompt), 40);
    request.sampling.temperature = 0.9F;
    request.sampling.top_p = 0.95F;
    request.sampling.top_k = 50;
    request.sampling.min_p = 0.01F;
    request.sampling.seed = seed;
    request.sampling.frequency_penalty = 0.3F;
    request.sampling.presence_penalty = 0.2F;
    request.sampling.repetition_penalty = 1.1F;
    request.sampling.ignore_eos = true;
    return request;
}

std::vector<TokenId> alone(const Request& request, EngineOptions options = {},
                           const std::string& file = "krill-f16.gguf") {
    const auto engine = make_engine(std::move(options), file);
    const auto answer = send(*engine, request);
    run(*engine);
    EXPECT_TRUE(answer->done());
    return answer->tokens;
}

/// A prompt of `count` tokens that means nothing but is ordinary in form.
std::vector<TokenId> long_prompt(std::size_t count, std::uint32_t salt = 0) {
    std::vector<TokenId> ids = {0, 4083};
    while (ids.size() < count)
        ids.push_back(static_cast<TokenId>(300 + (ids.size() * 7919 + salt * 131) % 3000));
    return ids;
}

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

class ExactnessTest : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Files, ExactnessTest, testing::Values("krill-f16.gguf", "krill-q8_0.gguf"),
                         [](const auto& info) {
                             return info.param == "krill-f16.gguf" ? "F16" : "Q8";
                         });

TEST_P(ExactnessTest, NeighboursThatComeAndGoChangeNothing) {
    const auto prompt = long_prompt(150);
    const auto expected = alone(sampled("a", prompt, 7), {}, GetParam());
    for (const std::size_t neighbours : {1U, 6U, 31U}) {
        const auto engine = make_engine({.step_tokens = 100}, GetParam());
        const auto answer = send(*engine, sampled("a", prompt, 7));
        std::size_t sent = 0;
        for (int step = 0; !answer->done(); ++step) {
            // A new neighbour every step until there are enough, and one leaves every third step.
            if (sent < neighbours) {
                const std::string id = "n" + std::to_string(sent);
                send(*engine, sampled(id, long_prompt(20 + sent * 37), sent));
                ++sent;
            }
            if (step % 3 == 2) engine->abort("n" + std::to_string(step / 3));
            ASSERT_TRUE(engine->step());
        }
        EXPECT_EQ(answer->tokens, expected) << neighbours << " neighbours";
    }
}

TEST_P(ExactnessTest, ChunksOfAPrefillChangeNothing) {
    const auto request = sampled("a", long_prompt(200), 3);
    const auto expected = alone(request, {.prefill_chunk = 512}, GetParam());
    for (const std::size_t chunk : {1U, 3U, 64U, 65U})
        EXPECT_EQ(alone(request, {.prefill_chunk = chunk}, GetParam()), expected) << chunk;
}

TEST_P(ExactnessTest, ThreadsChangeNothing) {
    const auto request = sampled("a", long_prompt(200), 4);
    const auto expected = alone(request, {.threads = 1}, GetParam());
    for (const std::size_t threads : {2U, 3U})
        EXPECT_EQ(alone(request, {.threads = threads}, GetParam()), expected) << threads;
}

TEST_P(ExactnessTest, APoolHitChangesNothingAndIsReported) {
    const auto prompt = long_prompt(300);
    const auto engine = make_engine({}, GetParam());
    const auto cold = send(*engine, sampled("a", prompt, 5));
    run(*engine);
    const auto warm = send(*engine, sampled("b", prompt, 5));
    run(*engine);
    EXPECT_EQ(cold->last.cached_tokens, 0U);
    EXPECT_EQ(warm->last.cached_tokens, 256U);
    EXPECT_LT(warm->last.computed_tokens, cold->last.computed_tokens);
    EXPECT_EQ(warm->tokens, cold->tokens);
}

TEST_P(ExactnessTest, ResumingAtEachTokenGivesTheSameRest) {
    const Request request = sampled("a", long_prompt(70), 11);
    const auto expected = alone(request, {}, GetParam());
    const auto engine = make_engine({}, GetParam());
    for (std::size_t given = 1; given < expected.size(); ++given) {
        Request resumed = request;
        resumed.id = "r" + std::to_string(given);
        resumed.resume_output_ids.assign(expected.begin(),
                                         expected.begin() + static_cast<std::ptrdiff_t>(given));
        const auto answer = send(*engine, resumed);
        run(*engine);
        std::vector<TokenId> whole = resumed.resume_output_ids;
        whole.insert(whole.end(), answer->tokens.begin(), answer->tokens.end());
        ASSERT_EQ(whole, expected) << "resumed after " << given;
        ASSERT_EQ(answer->last.completion_tokens, expected.size());
    }
}

// Prompts that repeat themselves, so that guesses are made, some right and some wrong.
TEST_P(ExactnessTest, SpeculationChangesNothing) {
    std::uint64_t drafted = 0;
    std::uint64_t accepted = 0;
    for (std::uint32_t seed = 0; seed < 8; ++seed) {
        std::vector<TokenId> prompt = krill::reference("story").all_ids();
        const std::vector<TokenId> again = prompt;
        prompt.insert(prompt.end(), again.begin(), again.begin() + 40 + seed);
        Request request = seed % 2 == 0 ? greedy("a", prompt, 80) : sampled("a", prompt, seed);
        request.return_logprobs = true;
        const auto plain = make_engine({}, GetParam());
        const auto expected = send(*plain, request);
        run(*plain);
        for (const std::size_t neighbours : {0U, 5U}) {
            const auto engine = make_engine({.speculation = Speculation::kLookup}, GetParam());
            const auto answer = send(*engine, request);
            for (std::size_t i = 0; i < neighbours; ++i)
                send(*engine, greedy("n" + std::to_string(i), long_prompt(30 + i), 60));
            run(*engine);
            ASSERT_EQ(answer->tokens, expected->tokens) << seed;
            ASSERT_EQ(answer->logprobs, expected->logprobs) << seed;
            ASSERT_EQ(answer->last.completion_tokens, expected->tokens.size());
            drafted += answer->last.drafted;
            accepted += answer->last.accepted;
            EXPECT_EQ(engine->stats().blocks_held, 0U);
        }
    }
    EXPECT_GT(accepted, 100U);
    EXPECT_GT(drafted, accepted);
}

TEST_P(ExactnessTest, PreemptionChangesNothing) {
    // Eight sequences of up to 4 blocks in a pool of 10.
    EngineOptions options{
        .pool_tokens = 640, .running_max = 8, .speculation = Speculation::kLookup};
    const auto engine = make_engine(options, GetParam());
    std::vector<std::shared_ptr<Answer>> answers;
    std::vector<Request> requests;
    for (std::uint32_t i = 0; i < 8; ++i) {
        Request request = sampled(std::to_string(i), long_prompt(50 + i, i), i);
        request.sampling.max_new_tokens = 150;
        requests.push_back(request);
        answers.push_back(send(*engine, request));
    }
    run(*engine);
    EXPECT_GT(engine->stats().preemptions, 0U);
    for (std::size_t i = 0; i < requests.size(); ++i)
        EXPECT_EQ(answers[i]->tokens, alone(requests[i], {}, GetParam())) << i;
    EXPECT_EQ(engine->stats().blocks_held, 0U);
}

TEST(EngineTest, TheSameSeedGivesTheSameTokensAndAnotherGivesOthers) {
    const auto prompt = krill::reference("story").prompt_ids;
    EXPECT_EQ(alone(sampled("a", prompt, 1)), alone(sampled("b", prompt, 1)));
    EXPECT_NE(alone(sampled("a", prompt, 1)), alone(sampled("a", prompt, 2)));
}

TEST(EngineTest, SaltsKeepPrefixesApart) {
    const auto engine = make_engine();
    Request first = greedy("a", long_prompt(200), 2);
    first.salt = "tenant-1";
    Request second = first;
    second.id = "b";
    second.salt = "tenant-2";
    send(*engine, first);
    run(*engine);
    const auto answer = send(*engine, second);
    run(*engine);
    EXPECT_EQ(answer->last.cached_tokens, 0U);
}

TEST(EngineTest, AbortFreesEverythingBeforeTheNextStep) {
    const auto engine = make_engine({.step_tokens = 64, .prefill_chunk = 64});
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

TEST(EngineTest, APrefillReportsItsProgress) {
    const auto engine = make_engine({.step_tokens = 64, .prefill_chunk = 64});
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
