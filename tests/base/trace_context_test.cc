#include "base/trace_context.h"

namespace sluice {
namespace {

constexpr std::string_view kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr std::string_view kParent = "00f067aa0ba902b7";

std::string header(std::string_view flags = "01", std::string_view version = "00") {
    return std::string(version) + "-" + std::string(kTrace) + "-" + std::string(kParent) + "-" +
           std::string(flags);
}

TEST(TraceContextTest, ACallersTraceGoesOnWithASpanOfItsOwn) {
    const TraceContext context = continue_trace(header());
    EXPECT_EQ(context.trace_id, kTrace);
    EXPECT_EQ(context.parent_id, kParent);
    EXPECT_EQ(context.span_id.size(), 16U);
    EXPECT_NE(context.span_id, kParent);
    EXPECT_TRUE(context.sampled);
    EXPECT_EQ(to_traceparent(context), "00-" + std::string(kTrace) + "-" + context.span_id + "-01");
}

TEST(TraceContextTest, TheCallerSaysWhetherItRecords) {
    EXPECT_FALSE(continue_trace(header("00")).sampled);
    EXPECT_FALSE(continue_trace(header("02")).sampled);
    EXPECT_TRUE(continue_trace(header("0f")).sampled);
    EXPECT_TRUE(to_traceparent(continue_trace(header("00"))).ends_with("-00"));
}

TEST(TraceContextTest, WithoutATraceOneBegins) {
    const TraceContext one = continue_trace(std::nullopt);
    const TraceContext two = continue_trace(std::nullopt);
    EXPECT_EQ(one.trace_id.size(), 32U);
    EXPECT_EQ(one.parent_id, "");
    EXPECT_NE(one.trace_id, two.trace_id);
    EXPECT_NE(one.span_id, two.span_id);
}

TEST(TraceContextTest, AMalformedHeaderIsAsGoodAsNone) {
    const std::string zeros(32, '0');
    for (const std::string& bad : std::vector<std::string>{
             "", "00", header() + "-more", header("1"), header("zz"), header("01", "ff"),
             header("01", "0G"), "00-" + zeros + "-00f067aa0ba902b7-01",
             "00-" + std::string(kTrace) + "-0000000000000000-01",
             "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", header("01", "01") + "x"}) {
        const TraceContext context = continue_trace(bad);
        EXPECT_EQ(context.parent_id, "") << bad;
        EXPECT_NE(context.trace_id, kTrace) << bad;
    }
}

TEST(TraceContextTest, ANewerVersionMayHaveMoreBehindTheFlags) {
    EXPECT_EQ(continue_trace(header("01", "01") + "-more").trace_id, kTrace);
    EXPECT_EQ(continue_trace(header("01", "cc")).trace_id, kTrace);
}

}  // namespace
}  // namespace sluice
