#include "trace/load_generator.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "net/http_server.h"

namespace sluice::trace {
namespace {

using Exchange = std::shared_ptr<net::HttpExchange>;

std::string chunk(std::string_view delta, std::string_view finish = "null") {
    return "data: {\"choices\":[{\"index\":0,\"delta\":" + std::string(delta) +
           ",\"finish_reason\":" + std::string(finish) + "}]}\n\n";
}

constexpr std::string_view kUsage =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":2,"
    "\"prompt_tokens_details\":{\"cached_tokens\":8}}}\n\ndata: [DONE]\n\n";

net::HttpResponse events(std::string body) {
    net::HttpResponse response{.status = 200, .headers = {}, .body = std::move(body)};
    response.headers.set("Content-Type", "text/event-stream");
    return response;
}

/// A server and a load generator on one loop, run to the end.
class LoadGeneratorTest : public ::testing::Test {
protected:
    void serve(std::function<void(const Exchange&)> handler) {
        auto server = net::HttpServer::listen(loop_, {}, std::move(handler));
        ASSERT_TRUE(server) << server.error().to_string();
        server_ = std::move(*server);
        target_ = {.url = "http://127.0.0.1:" + std::to_string(server_->port()) + "/v1",
                   .model = "m"};
    }

    void run(std::vector<PlannedRequest> plan, LoadOptions options) {
        generator_ = std::make_unique<LoadGenerator>(
            loop_, client_, target_, PromptMaker(), std::move(plan), options,
            LoadGenerator::Events{
                .on_result = [this](const PlannedRequest&,
                                    const CallResult& result) { results_.push_back(result); },
                .on_done =
                    [this] {
                        ++done_;
                        loop_.stop();
                    }});
        generator_->start();
        loop_.run();
    }

    CallResult answer_to(net::HttpResponse response, RequestKind kind = RequestKind::kText) {
        serve([response](const Exchange& exchange) { exchange->respond(response); });
        run({{.input_tokens = 5, .output_tokens = 2, .kind = kind}}, {.concurrency = 1});
        EXPECT_EQ(results_.size(), 1U);
        EXPECT_EQ(done_, 1);
        return results_.empty() ? CallResult{} : results_.front();
    }

    net::EventLoop loop_;
    net::HttpClient client_{loop_};
    std::unique_ptr<net::HttpServer> server_;
    LoadTarget target_;
    std::unique_ptr<LoadGenerator> generator_;
    std::vector<CallResult> results_;
    int done_ = 0;
};

TEST_F(LoadGeneratorTest, AnAnswerIsTimedAndCounted) {
    const CallResult result = answer_to(
        events(chunk(R"({"role":"assistant","content":""})") + chunk(R"({"content":"a"})") +
               chunk(R"({"content":"b"})") + chunk("{}", R"("stop")") + std::string(kUsage)));
    EXPECT_EQ(result.outcome, CallOutcome::kOk) << result.error;
    ASSERT_TRUE(result.ttft.has_value());
    EXPECT_EQ(result.gaps.size(), 1U) << "an empty first chunk is no token";
    EXPECT_EQ(result.prompt_tokens, 12U);
    EXPECT_EQ(result.cached_tokens, 8U);
    EXPECT_EQ(result.completion_tokens, 2U);
}

TEST_F(LoadGeneratorTest, AStatusIsToldWithTheServersWords) {
    const CallResult result =
        answer_to(net::HttpResponse::json(429, R"({"error":{"message":"slow down"}})"));
    EXPECT_EQ(result.outcome, CallOutcome::kRejected);
    EXPECT_EQ(result.status, 429);
    EXPECT_EQ(result.error, "slow down");
}

TEST_F(LoadGeneratorTest, AnErrorWithinAStreamIsAnError) {
    const CallResult result = answer_to(
        events(chunk(R"({"content":"a"})") + "data: {\"error\":{\"message\":\"lost\"}}\n\n"));
    EXPECT_EQ(result.outcome, CallOutcome::kError);
    EXPECT_EQ(result.error, "lost");
}

TEST_F(LoadGeneratorTest, AStreamThatJustStopsIsAnError) {
    const CallResult result = answer_to(events(chunk(R"({"content":"a"})")));
    EXPECT_EQ(result.outcome, CallOutcome::kError);
    EXPECT_EQ(result.error, "the stream ended without a finish reason");
}

TEST_F(LoadGeneratorTest, BrokenJsonIsInvalidOutputWhereJsonWasAsked) {
    const CallResult result =
        answer_to(events(chunk(R"({"content":"{\"answer\":"})") + chunk("{}", R"("length")")),
                  RequestKind::kJsonSchema);
    EXPECT_EQ(result.outcome, CallOutcome::kInvalidOutput);
}

TEST_F(LoadGeneratorTest, NobodyListeningIsAnErrorOfEachRequest) {
    serve([](const Exchange&) {});
    server_.reset();
    run(std::vector<PlannedRequest>(3, {.input_tokens = 1, .output_tokens = 1}),
        {.concurrency = 2});
    ASSERT_EQ(results_.size(), 3U);
    for (const CallResult& result : results_) {
        EXPECT_EQ(result.outcome, CallOutcome::kError);
        EXPECT_FALSE(result.error.empty());
    }
}

TEST_F(LoadGeneratorTest, AClosedLoopKeepsItsNumberOfRequestsOpen) {
    std::vector<Exchange> held;
    std::size_t most = 0;
    std::size_t seen = 0;
    serve([&](const Exchange& exchange) {
        held.push_back(exchange);
        ++seen;
        most = std::max(most, held.size());
        // Answers only once all that can be open are: 12 requests, 4 at a time.
        if (held.size() == 4) {
            for (const Exchange& each : std::exchange(held, {}))
                each->respond(events(chunk(R"({"content":"a"})", R"("stop")")));
        }
    });
    run(std::vector<PlannedRequest>(12, {.input_tokens = 1, .output_tokens = 1}),
        {.concurrency = 4});
    EXPECT_EQ(most, 4U);
    EXPECT_EQ(seen, 12U);
    EXPECT_EQ(results_.size(), 12U);
}

TEST_F(LoadGeneratorTest, AnOpenLoopSendsWithoutWaitingAndStopsAtItsBound) {
    std::vector<Exchange> held;
    serve([&](const Exchange& exchange) {
        held.push_back(exchange);
        if (held.size() < 3) return;
        for (const Exchange& each : held)
            each->respond(events(chunk(R"({"content":"a"})", R"("stop")")));
    });
    // All five are due at once, three may be open.
    run(std::vector<PlannedRequest>(5, {.input_tokens = 1, .output_tokens = 1}), {.open_max = 3});
    ASSERT_EQ(results_.size(), 5U);
    EXPECT_EQ(std::ranges::count_if(results_,
                                    [](const CallResult& result) {
                                        return result.error == "not sent: 3 requests are open";
                                    }),
              2);
    EXPECT_EQ(std::ranges::count(results_, CallOutcome::kOk, &CallResult::outcome), 3);
}

TEST_F(LoadGeneratorTest, ItCanBeStoppedEarly) {
    serve([&](const Exchange& exchange) {
        generator_->stop();
        exchange->respond(events(chunk(R"({"content":"a"})", R"("stop")")));
    });
    run(std::vector<PlannedRequest>(9, {.input_tokens = 1, .output_tokens = 1}),
        {.concurrency = 1});
    EXPECT_EQ(results_.size(), 1U);
    EXPECT_EQ(done_, 1);
}

TEST(RequestBodyTest, TheKindIsWhatItAsksFor) {
    const LoadTarget target{.url = "", .model = "m\"", .ignore_eos = true};
    const auto body = [&](RequestKind kind) {
        return request_body(target, {.input_tokens = 1, .output_tokens = 7, .kind = kind}, "hi\n");
    };
    EXPECT_EQ(body(RequestKind::kText),
              R"({"model":"m\"","messages":[{"role":"user","content":"hi\n"}],"max_tokens":7,)"
              R"("stream":true,"stream_options":{"include_usage":true},"ignore_eos":true})");
    EXPECT_NE(body(RequestKind::kSeeded).find(R"("seed":)"), std::string::npos);
    EXPECT_NE(body(RequestKind::kJsonSchema).find(R"("type":"json_schema")"), std::string::npos);
    EXPECT_NE(body(RequestKind::kTools).find(R"("name":"give_answer")"), std::string::npos);
}

}  // namespace
}  // namespace sluice::trace
