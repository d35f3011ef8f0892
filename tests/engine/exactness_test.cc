// Promise 1: the tokens of a request depend on its input, parameters, seed and model alone.

#include "tests/engine/drive.h"
#include "tests/engine/krill.h"

namespace sluice::engine {
namespace {

class ExactnessTest : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Files, ExactnessTest, testing::Values("krill-f16.gguf", "krill-q8_0.gguf"),
                         [](const auto& info) {
                             return info.param == "krill-f16.gguf" ? "F16" : "Q8";
                         });

TEST_P(ExactnessTest, NeighboursThatComeAndGoChangeNothing) {
    const auto prompt = long_prompt(150);
    const auto expected = alone(sampled("a", prompt, 7), {}, GetParam());
    for (const std::size_t neighbours : {1U, 6U, 31U}) {
        const auto engine = make_engine({.running_max = 64, .step_tokens = 100}, GetParam());
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

TEST_P(ExactnessTest, PreemptionChangesNothing) {
    // Eight sequences of up to 4 blocks in a pool of 10.
    const auto engine = make_engine({.pool_tokens = 640, .running_max = 8}, GetParam());
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

}  // namespace
}  // namespace sluice::engine
