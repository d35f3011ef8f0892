#include "gateway/patient_exchange.h"

#include <gmock/gmock.h>

#include "tests/gateway/fake_exchange.h"

namespace sluice::gateway {
namespace {

using namespace std::chrono_literals;

class PatientExchangeTest : public testing::Test {
protected:
    void run_until(const std::function<bool()>& condition) {
        for (int turn = 0; turn < 10'000 && !condition(); ++turn) loop.run_for(1ms);
        ASSERT_TRUE(condition());
    }

    net::EventLoop loop;
    std::shared_ptr<FakeExchange> inner = std::make_shared<FakeExchange>();
    std::shared_ptr<PatientExchange> exchange = std::make_shared<PatientExchange>(loop, inner);
};

TEST_F(PatientExchangeTest, AStreamThatWaitsGetsItsHeadAndAComment) {
    exchange->promise_stream({{"x-request-id", "r"}}, 1ms);
    run_until([&] { return inner->status != 0; });
    EXPECT_EQ(inner->status, 200);
    EXPECT_EQ(inner->headers.find("x-request-id"), "r");
    EXPECT_EQ(inner->headers.find("content-type"), "text/event-stream; charset=utf-8");
    EXPECT_TRUE(inner->body.starts_with(":"));
    inner->body.clear();
    exchange->begin_stream(200, {{"x-late", "1"}});
    exchange->write("data: 1\n\n");
    exchange->end_stream();
    EXPECT_EQ(inner->body, "data: 1\n\n");
    EXPECT_TRUE(inner->ended);
}

TEST_F(PatientExchangeTest, AnAnswerInTimeIsAsItWouldBeWithoutIt) {
    exchange->promise_stream({}, 1h);
    exchange->begin_stream(200, {{"x-late", "1"}});
    EXPECT_EQ(inner->headers.find("x-late"), "1");
    EXPECT_EQ(inner->body, "");
}

TEST_F(PatientExchangeTest, AnErrorInTimeHasItsStatus) {
    exchange->promise_stream({}, 1h);
    exchange->respond(net::HttpResponse::json(429, "{}"));
    EXPECT_EQ(inner->status, 429);
}

TEST_F(PatientExchangeTest, AnErrorAfterTheHeadIsTheStreamsLastEvent) {
    exchange->promise_stream({}, 0ms);
    run_until([&] { return inner->status != 0; });
    inner->body.clear();
    exchange->respond(net::HttpResponse::json(504, "{\"error\":{\n\"code\":1}}"));
    EXPECT_EQ(inner->status, 200);
    EXPECT_EQ(inner->body, "data: {\"error\":{\ndata: \"code\":1}}\n\n");
    EXPECT_TRUE(inner->ended);
}

TEST_F(PatientExchangeTest, AStreamedErrorAfterTheHeadIsOneEvent) {
    exchange->promise_stream({}, 0ms);
    run_until([&] { return inner->status != 0; });
    inner->body.clear();
    exchange->begin_stream(500, {});
    exchange->write("{\"error\"");
    exchange->write(":1}");
    exchange->end_stream();
    EXPECT_EQ(inner->body, "data: {\"error\":1}\n\n");
}

}  // namespace
}  // namespace sluice::gateway
