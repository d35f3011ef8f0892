#include "gateway/otlp_json.h"

#include <boost/json/parse.hpp>

namespace sluice::gateway {
namespace {

RequestReport report() {
    using std::chrono::milliseconds;
    RequestReport report{.rid = "r1",
                         .trace = {.trace_id = std::string(32, 'a'),
                                   .parent_id = std::string(16, 'b'),
                                   .span_id = std::string(16, 'c')},
                         .time = std::chrono::system_clock::time_point(milliseconds(1'000)),
                         .pool = "stable",
                         .model = "krill \"1\"",
                         .duration = milliseconds(500),
                         .outcome = Outcome::kWorkerLost,
                         .status = 502};
    report.legs.push_back({.pool = "stable",
                           .worker = "stable-0",
                           .began = milliseconds(10),
                           .ended = milliseconds(20),
                           .fault = "reset"});
    return report;
}

TEST(OtlpJsonTest, ARequestIsASpanAndItsLegsAreChildren) {
    const std::vector<std::string> spans = {spans_json(report()), spans_json(report())};
    const auto body = boost::json::parse(export_json(spans));
    const auto& all = body.at("resourceSpans").at(0).at("scopeSpans").at(0).at("spans").as_array();
    ASSERT_EQ(all.size(), 4U);
    const auto& request = all[0];
    EXPECT_EQ(request.at("traceId"), std::string(32, 'a').c_str());
    EXPECT_EQ(request.at("spanId"), std::string(16, 'c').c_str());
    EXPECT_EQ(request.at("parentSpanId"), std::string(16, 'b').c_str());
    EXPECT_EQ(request.at("startTimeUnixNano"), "1000000000");
    EXPECT_EQ(request.at("endTimeUnixNano"), "1500000000");
    EXPECT_EQ(request.at("status").at("code"), 2);
    EXPECT_EQ(request.at("status").at("message"), "worker_lost");
    const auto& leg = all[1];
    EXPECT_EQ(leg.at("parentSpanId"), request.at("spanId"));
    EXPECT_NE(leg.at("spanId"), request.at("spanId"));
    EXPECT_EQ(leg.at("startTimeUnixNano"), "1010000000");
    EXPECT_EQ(leg.at("status").at("message"), "reset");
}

TEST(OtlpJsonTest, ASpanThatBeginsATraceHasNoParentAndASuccessNoStatus) {
    RequestReport ok = report();
    ok.trace.parent_id.clear();
    ok.outcome = Outcome::kOk;
    ok.legs.clear();
    const auto span = boost::json::parse(spans_json(ok)).as_object();
    EXPECT_FALSE(span.contains("parentSpanId"));
    EXPECT_FALSE(span.contains("status"));
}

}  // namespace
}  // namespace sluice::gateway
