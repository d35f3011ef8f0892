#include "gateway/trace_exporter.h"

#include "base/trace_limits.h"
#include "net/http_server.h"

namespace sluice::gateway {
namespace {

/// A collector on the test's own loop; it answers when it is told to.
class TraceExporterTest : public testing::Test {
protected:
    void SetUp() override {
        server_ = *net::HttpServer::listen(
            loop_, {}, [this](const std::shared_ptr<net::HttpExchange>& exchange) {
                paths_.push_back(exchange->request().path);
                if (answers_) {
                    exchange->respond(net::HttpResponse::json(status_, "{}"));
                } else {
                    held_.push_back(exchange);
                }
            });
        exporter_ = *TraceExporter::create(
            loop_, {.endpoint = "http://127.0.0.1:" + std::to_string(server_->port()) + "/",
                    .batch_delay = std::chrono::milliseconds(1)});
    }
    static RequestReport report() {
        return {.trace = continue_trace(std::nullopt), .time = std::chrono::system_clock::now()};
    }
    template <class Condition>
    void run_until(const Condition& condition) {
        for (int i = 0; i < 20'000 && !condition(); ++i)
            loop_.run_for(std::chrono::milliseconds(1));
        ASSERT_TRUE(condition());
    }

    net::EventLoop loop_;
    std::unique_ptr<net::HttpServer> server_;
    std::shared_ptr<TraceExporter> exporter_;
    std::vector<std::string> paths_;
    std::vector<std::shared_ptr<net::HttpExchange>> held_;
    bool answers_ = true;
    int status_ = 200;
};

TEST_F(TraceExporterTest, SpansGoOutInBatches) {
    for (int i = 0; i < 10; ++i) exporter_->add(report());
    run_until([&] { return exporter_->exported() == 10; });
    EXPECT_EQ(paths_, std::vector<std::string>{"/v1/traces"});
    exporter_->add(report());
    run_until([&] { return exporter_->exported() == 11; });
}

TEST_F(TraceExporterTest, WhatTheCallerDoesNotRecordIsNotExported) {
    RequestReport quiet = report();
    quiet.trace.sampled = false;
    exporter_->add(quiet);
    exporter_->add(report());
    run_until([&] { return exporter_->exported() == 1; });
    EXPECT_EQ(exporter_->dropped(), 0U);
}

TEST_F(TraceExporterTest, ASlowCollectorCostsSpansAndBoundedMemory) {
    answers_ = false;
    exporter_->add(report());
    run_until([&] { return !held_.empty(); });
    for (std::size_t i = 0; i < limits::kTracesWaiting + 100; ++i) exporter_->add(report());
    EXPECT_EQ(exporter_->dropped(), 101U);
    answers_ = true;
    held_[0]->respond(net::HttpResponse::json(200, "{}"));
    held_.clear();
    run_until([&] { return exporter_->exported() == limits::kTracesWaiting; });
}

TEST_F(TraceExporterTest, WhatACollectorRefusesIsDroppedAndNotTriedAgain) {
    status_ = 503;
    exporter_->add(report());
    run_until([&] { return exporter_->dropped() == 1; });
    status_ = 200;
    exporter_->add(report());
    run_until([&] { return exporter_->exported() == 1; });
    EXPECT_EQ(paths_.size(), 2U);
}

TEST_F(TraceExporterTest, AnEndpointThatIsNoAddressIsRefused) {
    EXPECT_FALSE(TraceExporter::create(loop_, {.endpoint = "collector:4318"}).has_value());
}

}  // namespace
}  // namespace sluice::gateway
