// POST /generate over real sockets: what comes out, and that nothing is left behind.

#include <algorithm>
#include <set>

#include "port/abort.h"
#include "tests/worker/support.h"

namespace sluice::worker {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

Stream stream(TestClient& client, const TestWorker& worker, const port::GenerateRequest& request) {
    const HttpAnswer answer = client.fetch(post(worker.url("/generate"), port::to_json(request)));
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_FALSE(answer.error.has_value());
    return parse_stream(answer.body);
}

TEST(GenerateTest, AStreamGivesTheTokensOfTheEngine) {
    TestWorker worker;
    TestClient client;
    const port::GenerateRequest asked = request(1, 100, 40);
    const Stream got = stream(client, worker, asked);
    EXPECT_TRUE(got.done);
    EXPECT_EQ(got.tokens(), engine_tokens(asked));
    const port::GenerateFrame& last = got.frames.back();
    EXPECT_EQ(last.rid, asked.rid);
    EXPECT_EQ(last.finish_reason, (port::FinishReason{.type = port::FinishType::kLength}));
    EXPECT_EQ(last.prompt_tokens, 100U);
    EXPECT_EQ(last.completion_tokens, 40U);
    EXPECT_EQ(last.computed_tokens, 139U);
    EXPECT_TRUE(worker.wait_until_idle());
}

TEST(GenerateTest, WithoutAStreamTheAnswerIsOneFrame) {
    TestWorker worker;
    TestClient client;
    port::GenerateRequest asked = request(1, 100, 40);
    asked.stream = false;
    const HttpAnswer answer = client.fetch(post(worker.url("/generate"), port::to_json(asked)));
    EXPECT_EQ(answer.status, 200);
    const auto frame = port::parse_generate_frame(answer.body);
    ASSERT_TRUE(frame.has_value()) << answer.body;
    EXPECT_EQ(frame->output_ids, engine_tokens(asked));
    ASSERT_TRUE(frame->finish_reason.has_value());
    EXPECT_EQ(frame->finish_reason->type, port::FinishType::kLength);
}

TEST(GenerateTest, AStopTokenIsNamedAndLast) {
    TestWorker worker;
    TestClient client;
    port::GenerateRequest asked = request(1, 20, 30);
    const TokenId stop = engine_tokens(asked)[10];
    asked.sampling_params.stop_token_ids = {stop};
    const Stream got = stream(client, worker, asked);
    EXPECT_EQ(got.tokens().back(), stop);
    EXPECT_EQ(got.frames.back().finish_reason,
              (port::FinishReason{.type = port::FinishType::kStop, .matched = stop}));
}

TEST(GenerateTest, SixtyFourAtOnceGetTheirOwnTokens) {
    TestWorker worker;
    TestClient client;
    std::vector<port::GenerateRequest> asked;
    std::vector<std::unique_ptr<PendingCall>> calls;
    for (std::uint32_t i = 0; i < 64; ++i) {
        asked.push_back(request(i, 5 + i * 3, 20));
        calls.push_back(client.start(post(worker.url("/generate"), port::to_json(asked[i]))));
    }
    for (std::uint32_t i = 0; i < 64; ++i) {
        const Stream got = parse_stream(calls[i]->wait().body);
        EXPECT_TRUE(got.done);
        EXPECT_EQ(got.tokens(), engine_tokens(asked[i])) << i;
    }
    EXPECT_TRUE(worker.wait_until_idle());
}

TEST(GenerateTest, AResumedRequestGoesOnWhereItStopped) {
    TestWorker worker;
    TestClient client;
    port::GenerateRequest asked = request(1, 70, 30);
    const std::vector<TokenId> whole = engine_tokens(asked);
    asked.resume_output_ids.assign(whole.begin(), whole.begin() + 12);
    const Stream got = stream(client, worker, asked);
    EXPECT_EQ(got.tokens(), std::vector<TokenId>(whole.begin() + 12, whole.end()));
    EXPECT_EQ(got.frames.back().completion_tokens, 30U);
}

TEST(GenerateTest, APrefixInThePoolIsReportedWithItsSource) {
    TestWorker worker;
    TestClient client;
    static_cast<void>(stream(client, worker, request(1, 200, 2)));
    port::GenerateRequest again = request(1, 200, 2);
    again.rid = rid(2);
    const Stream got = stream(client, worker, again);
    EXPECT_EQ(got.frames.back().cached_tokens, 192U);
    EXPECT_EQ(got.frames.back().cached_tokens_by_source.at("pool"), 192U);
}

TEST(GenerateTest, LogprobsOfTheInputComeWithTheFirstTokenOnly) {
    TestWorker worker;
    TestClient client;
    port::GenerateRequest asked = request(1, 600, 5);
    asked.return_logprob = true;
    asked.top_logprobs_num = 2;
    asked.logprob_start_len = 0;
    const Stream got = stream(client, worker, asked);
    std::size_t with_input = 0;
    bool any_token = false;
    for (const port::GenerateFrame& frame : got.frames) {
        EXPECT_EQ(frame.output_logprobs.size(), frame.output_ids.size());
        if (frame.input_logprobs.empty()) {
            any_token = any_token || !frame.output_ids.empty();
            continue;
        }
        ++with_input;
        EXPECT_FALSE(any_token);
        EXPECT_FALSE(frame.output_ids.empty());
        EXPECT_EQ(frame.input_logprobs.size(), 599U);
        EXPECT_EQ(frame.input_logprobs[0].chosen.token, asked.input_ids[1]);
        EXPECT_EQ(frame.input_logprobs[0].top.size(), 2U);
    }
    EXPECT_EQ(with_input, 1U);
}

TEST(GenerateTest, ComputedTokensGrowWhileAPrefillRuns) {
    TestWorker worker({.engine = {.pool_tokens = 4096, .prefill_chunk = 64}});
    worker.gate.close();
    FrameReader reader(worker.port(), request(1, 256, 1));
    for (const std::uint64_t computed : {64, 128, 192, 256}) {
        worker.gate.allow();
        const auto frame = reader.next();
        ASSERT_TRUE(frame.has_value());
        EXPECT_EQ(frame->computed_tokens, computed);
        EXPECT_EQ(frame->output_ids.size(), computed == 256 ? 1U : 0U);
    }
    EXPECT_FALSE(reader.next().has_value());
}

TEST(GenerateTest, AStreamThatWaitsShowsLifeButNoProgress) {
    TestWorker worker(
        {.engine = {.pool_tokens = 4096, .running_max = 1}, .heartbeat = milliseconds(2)});
    worker.gate.close();
    FrameReader first(worker.port(), request(1, 10, 50));
    ASSERT_TRUE(worker.gate.wait_until_held());
    FrameReader second(worker.port(), request(2, 10, 2));
    for (int beat = 0; beat < 3; ++beat) {
        // An engine that makes no step has no heart that beats.
        worker.gate.allow();
        const auto frame = second.next();
        ASSERT_TRUE(frame.has_value());
        EXPECT_EQ(frame->computed_tokens, 0U);
        EXPECT_EQ(frame->prompt_tokens, 10U);
        EXPECT_TRUE(frame->output_ids.empty());
        EXPECT_FALSE(frame->finish_reason.has_value());
    }
    worker.gate.open();
    EXPECT_EQ(second.rest().tokens(), engine_tokens(request(2, 10, 2)));
}

TEST(GenerateTest, AnAbortEndsTheStreamWithItsReasonAndFreesEverything) {
    TestWorker worker;
    TestClient client;
    FrameReader reader(worker.port(), request(1, 100, 50'000));
    ASSERT_TRUE(reader.next().has_value());
    const HttpAnswer answer = client.fetch(
        post(worker.url("/abort_request"), port::to_json(port::AbortRequest{.rid = rid(1)})));
    EXPECT_EQ(answer.status, 200);
    const Stream got = reader.rest();
    EXPECT_EQ(got.frames.back().finish_reason,
              (port::FinishReason{
                  .type = port::FinishType::kAbort, .matched = {}, .message = "aborted"}));
    EXPECT_TRUE(worker.wait_until_idle());
    EXPECT_LT(worker.stats().steps, 50'000U);
}

TEST(GenerateTest, AbortingWhatIsNotThereIsNoError) {
    TestWorker worker;
    TestClient client;
    const auto abort = [&](std::string body) {
        return client.fetch(post(worker.url("/abort_request"), std::move(body))).status;
    };
    EXPECT_EQ(abort(port::to_json(port::AbortRequest{.rid = rid(9)})), 200);
    EXPECT_EQ(abort(R"({"rid":"0"})"), 400);
}

TEST(GenerateTest, AClientThatLeavesDuringThePrefillLeavesNothingBehind) {
    TestWorker worker({.engine = {.pool_tokens = 65'536, .prefill_chunk = 64}});
    worker.gate.close();
    FrameReader reader(worker.port(), request(1, 20'000, 20'000));
    worker.gate.allow();
    ASSERT_TRUE(reader.next().has_value());
    EXPECT_GT(worker.stats().blocks_held, 0U);
    reader.close();
    worker.gate.open();
    EXPECT_TRUE(worker.wait_until_idle());
    EXPECT_LT(worker.stats().steps, 20'000U);
}

TEST(GenerateTest, AClientThatLeavesBeforeItsTurnLeavesTheQueue) {
    TestWorker worker({.engine = {.pool_tokens = 65'536, .running_max = 1}});
    worker.gate.close();
    FrameReader first(worker.port(), request(1, 10, 3));
    ASSERT_TRUE(worker.gate.wait_until_held());
    FrameReader second(worker.port(), request(2, 10, 50'000));
    EXPECT_NE(second.head().find("200"), std::string::npos);
    worker.gate.allow();
    worker.gate.allow();  // The step that took it in has ended.
    ASSERT_TRUE(worker.wait_until_waiting(1));
    second.close();
    worker.gate.open();
    EXPECT_EQ(first.rest().tokens().size(), 3U);
    EXPECT_TRUE(worker.wait_until_idle());
    EXPECT_LT(worker.stats().steps, 50'000U);
}

TEST(GenerateTest, AClientThatLeavesDuringTheDecodeLeavesNothingBehind) {
    for (const bool streams : {true, false}) {
        TestWorker worker;
        TestClient client;
        port::GenerateRequest asked = request(1, 100, 50'000);
        asked.stream = streams;
        const auto call = client.start(post(worker.url("/generate"), port::to_json(asked)));
        const auto end = std::chrono::steady_clock::now() + kPatience;
        while (worker.stats().steps < 5 && std::chrono::steady_clock::now() < end) {
            std::this_thread::yield();
        }
        call->cancel();
        EXPECT_TRUE(worker.wait_until_idle());
        EXPECT_LT(worker.stats().steps, 50'000U);
    }
}

TEST(GenerateTest, ADeadlineEndsARequestWithWhatThereIs) {
    TestWorker worker;
    TestClient client;
    port::GenerateRequest asked = request(1, 100, 50'000);
    asked.deadline_ms = 50;
    const Stream got = stream(client, worker, asked);
    EXPECT_TRUE(got.done);
    EXPECT_EQ(got.frames.back().finish_reason,
              (port::FinishReason{
                  .type = port::FinishType::kAbort, .matched = {}, .message = "deadline"}));
    EXPECT_EQ(got.tokens().size(), got.frames.back().completion_tokens);
    EXPECT_TRUE(worker.wait_until_idle());
}

TEST(GenerateTest, ASlowReaderGetsAllTokensInFewerFrames) {
    TestWorker worker;
    port::GenerateRequest asked = request(1, 10, 4'000);
    asked.return_logprob = true;
    asked.top_logprobs_num = 20;
    FrameReader reader(worker.port(), asked, 4096);
    EXPECT_NE(reader.head().find("200"), std::string::npos);
    ASSERT_TRUE(worker.wait_until_idle());  // The engine does not wait for anybody.
    const Stream got = reader.rest();
    EXPECT_EQ(got.tokens(), engine_tokens(asked));
    EXPECT_LT(got.frames.size(), 4'000U);
    ASSERT_TRUE(got.frames.back().finish_reason.has_value());
    EXPECT_EQ(got.frames.back().finish_reason->type, port::FinishType::kLength);
}

}  // namespace
}  // namespace sluice::worker
