// A pool split into prefill and decode, in front of workers that do what a test tells them to.

#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

using routing::LegPhase;
constexpr std::string_view kText = "Once upon a time there was a fox";

class HandoverTest : public GatewayTest {
protected:
    void start_split(std::vector<FakeWorker::Script> prefill,
                     std::vector<FakeWorker::Script> decode) {
        worker = std::make_unique<FakeWorker>(loop, std::move(prefill));
        decoder = std::make_unique<FakeWorker>(loop, std::move(decode));
        std::vector<discovery::WorkerEntry> workers{
            {.url = worker->url(), .phase = LegPhase::kPrefill},
            {.url = decoder->url(), .phase = LegPhase::kDecode}};
        if (other) workers.push_back({.url = other->url(), .phase = LegPhase::kDecode});
        start_gateway({.native_pools = {{.name = "stable", .workers = workers}}});
        run_until([&] { return ready() == workers.size(); });
    }
    [[nodiscard]] std::size_t ready() {
        std::size_t count = 0;
        const json::value now = status();
        for (const json::value& each : now.at("pools").at(0).at("workers").as_array())
            count += each.at("state") == "ready" && !each.at("versions").is_null() ? 1 : 0;
        return count;
    }
    [[nodiscard]] Reply stream() { return chat(R"(,"stream":true)"); }
    /// Nothing is held, leased or waited for.
    void expect_idle() {
        EXPECT_EQ(gateway->live_requests(), 0U);
        EXPECT_EQ(gateway->pools().registry().leases(), 0U);
    }

    std::unique_ptr<FakeWorker> decoder;
    std::unique_ptr<FakeWorker> other;  ///< A second one that decodes; null in most tests.
};

TEST_F(HandoverTest, OneWorkerPrefillsAndTheOtherDecodes) {
    start_split({prefills(std::string(kText))}, {says(std::string(kText))});
    EXPECT_EQ(stream().content(), kText);
    ASSERT_EQ(worker->requests.size(), 1U);
    ASSERT_EQ(decoder->requests.size(), 1U);
    EXPECT_EQ(worker->requests[0].phase, port::Phase::kPrefill);
    const port::GenerateRequest& decode = decoder->requests[0];
    EXPECT_EQ(decode.phase, port::Phase::kDecode);
    EXPECT_EQ(decode.resume_output_ids, std::vector{ids(kText).front()});
    ASSERT_EQ(decode.kv.sources.size(), 1U);
    EXPECT_EQ(decode.kv.sources[0].url, worker->url());
    EXPECT_EQ(decode.kv.sources[0].hold, worker->requests[0].rid);
    EXPECT_EQ(decode.kv.sources[0].tail_tokens, 5U);
    EXPECT_EQ(decode.sampling_params.seed, worker->requests[0].sampling_params.seed);
    EXPECT_TRUE(worker->released.empty()) << "the decode worker tells it itself";
    expect_idle();
}

TEST_F(HandoverTest, AnAnswerThatEndsInPrefillIsNotDecoded) {
    start_split({says("Yes")}, {says("No")});
    EXPECT_EQ(stream().content(), "Yes");
    EXPECT_TRUE(decoder->requests.empty());
    expect_idle();
}

TEST_F(HandoverTest, LostBlocksAreComputedAgainByPrefill) {
    start_split({prefills(std::string(kText))}, {misses_blocks(), says(std::string(kText))});
    EXPECT_EQ(stream().content(), kText);
    ASSERT_EQ(worker->requests.size(), 2U);
    EXPECT_EQ(worker->requests[1].resume_output_ids, std::vector{ids(kText).front()});
    EXPECT_EQ(worker->released, std::vector{worker->requests[0].rid});
    expect_idle();
}

TEST_F(HandoverTest, AfterTwoHandOversThatFailOneWorkerDoesItAll) {
    start_split(
        {prefills(std::string(kText)), prefills(std::string(kText)), says(std::string(kText))},
        {misses_blocks(), misses_blocks(), says(std::string(kText))});
    EXPECT_EQ(stream().content(), kText);
    const bool by_prefill = worker->requests.size() == 3;
    const auto& last = by_prefill ? worker->requests[2] : decoder->requests[2];
    EXPECT_EQ(last.phase, port::Phase::kFull);
    EXPECT_EQ(worker->released.size(), 2U);
    expect_idle();
}

TEST_F(HandoverTest, ALostDecodeWorkersStreamGoesOnThroughPrefill) {
    other = std::make_unique<FakeWorker>(loop,
                                         std::vector<FakeWorker::Script>{says(std::string(kText))});
    start_split({prefills(std::string(kText))}, {dies_after(std::string(kText), 4)});
    // Whichever of the two has it first: of two streams one meets the worker that dies.
    EXPECT_EQ(stream().content(), kText);
    if (decoder->requests.empty()) {
        EXPECT_EQ(stream().content(), kText);
    }
    ASSERT_EQ(decoder->requests.size(), 1U);
    const port::GenerateRequest& again = worker->requests.back();
    EXPECT_EQ(again.phase, port::Phase::kPrefill);
    EXPECT_EQ(again.resume_output_ids.size(), 4U);
    expect_idle();
}

TEST_F(HandoverTest, AClientThatGoesBetweenTheLegsLeavesNothingHeld) {
    start_split({prefills(std::string(kText))},
                {[](const port::GenerateRequest&, net::HttpExchange& exchange) {
                    begin(exchange);  // It fetches the blocks, and says nothing yet.
                }});
    Reply reply;
    auto call = begin_send(reply, "POST", "/v1/chat/completions", body(R"(,"stream":true)"));
    run_until([&] { return decoder->requests.size() == 1; });
    call.reset();
    run_until([&] { return !worker->released.empty() && decoder->gone == 1; });
    EXPECT_EQ(worker->released, std::vector{worker->requests[0].rid});
    expect_idle();
}

TEST_F(HandoverTest, AStopStringInPrefillsTokenLetsTheBlocksGo) {
    start_split({prefills(std::string(kText))}, {says(std::string(kText))});
    const Reply reply = chat(R"(,"stop":["Once"])");
    EXPECT_EQ(reply.status, 200);
    run_until([&] { return !worker->released.empty(); });
    EXPECT_TRUE(decoder->requests.empty());
    expect_idle();
}

TEST_F(HandoverTest, WithoutADecodeWorkerPrefillDoesItAll) {
    start_split({says(std::string(kText))}, {says(std::string(kText))});
    decoder->ready = false;
    run_until([this] { return ready() == 1; });
    EXPECT_EQ(stream().content(), kText);
    ASSERT_EQ(worker->requests.size(), 1U);
    EXPECT_EQ(worker->requests[0].phase, port::Phase::kFull);
}

TEST_F(HandoverTest, WithoutAPrefillWorkerDecodeDoesItAll) {
    start_split({says(std::string(kText))}, {says(std::string(kText))});
    worker->ready = false;
    run_until([this] { return ready() == 1; });
    EXPECT_EQ(stream().content(), kText);
    ASSERT_EQ(decoder->requests.size(), 1U);
    EXPECT_EQ(decoder->requests[0].phase, port::Phase::kFull);
}

TEST_F(GatewayTest, WhatLostItsWorkerGoesOnLittleByLittle) {
    constexpr int kStreams = 6;
    // All at once on one worker, which dies; the other answers when the test says so.
    FakeWorker survivor(loop, {[](const auto&, net::HttpExchange& exchange) { begin(exchange); }});
    survivor.ready = false;
    worker = std::make_unique<FakeWorker>(loop, std::vector{hangs("Once upon a time")});
    start_gateway({.native_pools = {{.name = "stable",
                                     .workers = {{.url = worker->url()}, {.url = survivor.url()}}}},
                   .resume_tokens = 1});
    run_until([this] { return get("/ready").status == 200; });
    std::array<Reply, kStreams> replies;
    std::vector<std::unique_ptr<net::HttpCall>> calls;
    for (Reply& reply : replies)
        calls.push_back(
            begin_send(reply, "POST", "/v1/chat/completions", body(R"(,"stream":true)")));
    run_until([&] {
        return std::ranges::all_of(replies,
                                   [](const Reply& each) { return !each.content().empty(); });
    });
    survivor.ready = true;
    worker->answers = false;
    for (const auto& exchange : worker->exchanges) exchange->abort();
    for (std::size_t turn = 1; turn <= kStreams; ++turn) {
        run_until([&] { return survivor.requests.size() >= turn; });
        EXPECT_EQ(survivor.requests.size(), turn)
            << "one at a time, for each is longer than allowed";
        send_frame(*survivor.exchanges.back(), tokens({ids("Once upon")[1]}));
    }
    EXPECT_EQ(worker->requests.size(), std::size_t{kStreams});
    for (const auto& exchange : survivor.exchanges) end_with(*exchange, port::FinishType::kStop);
    run_until(
        [&] { return std::ranges::all_of(replies, [](const Reply& each) { return each.done; }); });
    for (const Reply& reply : replies) EXPECT_EQ(reply.content(), "Once upon");
    EXPECT_EQ(gateway->live_requests(), 0U);
    EXPECT_NE(metrics().find("sluice_resumes_waiting 0"), std::string::npos);
}

TEST_F(GatewayTest, APromptThatTakesWorkersDownIsNotTriedAgain) {
    start({dies_after("x", 0), dies_after("x", 0), says("Hello")});
    EXPECT_EQ(chat("").json().at("error").at("code"), "worker_lost");
    EXPECT_EQ(worker->requests.size(), 2U);
    const Reply again = chat("");
    EXPECT_EQ(again.status, 422);
    EXPECT_EQ(again.json().at("error").at("code"), "request_quarantined");
    EXPECT_EQ(worker->requests.size(), 2U) << "the third worker lives";
    const Reply other = chat(R"(,"stop":["x"],"max_tokens":9)");
    EXPECT_EQ(other.status, 422) << "the same prompt, however it is asked";
    EXPECT_NE(metrics().find("sluice_quarantined_total 1"), std::string::npos);
    const Reply another = send("POST", "/v1/chat/completions",
                               R"({"model":"krill","messages":[{"role":"user","content":"Ho"}]})");
    EXPECT_EQ(another.status, 200);
}

}  // namespace
}  // namespace sluice::gateway
