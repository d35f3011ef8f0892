#include "sim/sim_report.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "sim/sim_page.h"

namespace sluice::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

RequestResult result(Outcome outcome, std::uint32_t prompt, Duration ttft) {
    RequestResult result{.prompt_tokens = prompt,
                         .answer_tokens = 2,
                         .cached = {.by_source = {prompt / 4, 0, 0}},
                         .ran = outcome == Outcome::kOk,
                         .outcome = outcome,
                         .duration = seconds(20)};
    if (outcome == Outcome::kOk) {
        result.ttft = ttft;
        result.gaps.add(milliseconds(50));
    }
    return result;
}

Results results() {
    Results results;
    results.objectives = {.ttft = seconds(1), .tbt = milliseconds(100)};
    results.add(result(Outcome::kOk, 1'000, milliseconds(500)));
    results.add(result(Outcome::kOk, 100'000, seconds(5)));
    results.add(result(Outcome::kRejected, 2'000, {}));
    results.workers = {{.prefill_tokens = 300, .steps = 4, .computing = milliseconds(1'500)},
                       {.prefill_tokens = 100},
                       {.computes_prompts = false, .decode_tokens = 7}};
    return results;
}

TEST(SimReportTest, JsonHasWhatChecksRead) {
    const auto object =
        boost::json::parse(
            to_json({.trace = "t", .policy = "default", .workers = 3, .seed = 9}, results()))
            .as_object();
    EXPECT_EQ(object.at("trace").as_string(), "t");
    EXPECT_EQ(object.at("policy").as_string(), "default");
    EXPECT_EQ(object.at("workers").to_number<int>(), 3);
    EXPECT_EQ(object.at("seed").to_number<int>(), 9);
    EXPECT_EQ(object.at("requests").to_number<int>(), 3);
    EXPECT_EQ(object.at("completed").to_number<int>(), 2);
    EXPECT_EQ(object.at("rejected").to_number<int>(), 1);
    EXPECT_DOUBLE_EQ(object.at("hit_share").as_double(), 0.25);
    EXPECT_DOUBLE_EQ(object.at("imbalance").as_double(), 1.5);
    EXPECT_DOUBLE_EQ(object.at("ttft_ms").at("p50").as_double(), 500.0);
    EXPECT_TRUE(object.at("tbt_ms").as_object().contains("p99"));
    EXPECT_DOUBLE_EQ(object.at("goodput_rps").as_double(), 1.0 / 20.0);
    const auto& worker = object.at("by_worker").as_array()[0];
    EXPECT_EQ(worker.at("steps").to_number<int>(), 4);
    EXPECT_DOUBLE_EQ(worker.at("computing_s").as_double(), 1.5);
    const auto& tiers = object.at("by_tier").as_array();
    ASSERT_EQ(tiers.size(), 4u);
    EXPECT_EQ(tiers[0].at("tier").as_string(), "<=16k");
    EXPECT_EQ(tiers[0].at("rejected").to_number<int>(), 1);
    EXPECT_DOUBLE_EQ(tiers[2].at("ttft_ms").at("p99").as_double(), 5'000.0);
    EXPECT_TRUE(tiers[3].at("ttft_ms").at("p50").is_null());
}

TEST(SimReportTest, TextSaysWhatWasRejectedBesideTheLatencies) {
    const std::string text = to_text({.trace = "t", .policy = "default", .workers = 3}, results());
    EXPECT_NE(text.find("2 completed, 1 rejected"), std::string::npos) << text;
    EXPECT_NE(text.find("33.3 %"), std::string::npos) << text;
}

TEST(SimReportTest, NamesFromOutsideStayText) {
    RunResult run{.title = {.trace = "<script>\"", .policy = "<b>"}, .results = results()};
    const std::string html = to_html({run});
    EXPECT_EQ(html.find("<script>"), std::string::npos);
    EXPECT_EQ(html.find("<b>"), std::string::npos);
    // One file that needs nothing else.
    EXPECT_EQ(html.find("http"), std::string::npos);
    EXPECT_EQ(html.find("src="), std::string::npos);
}

TEST(SimReportTest, NothingAtAllIsAReport) {
    EXPECT_NE(to_text({.trace = "t"}, {}).find("0 completed"), std::string::npos);
    EXPECT_TRUE(boost::json::parse(to_json({}, {})).is_object());
    EXPECT_FALSE(to_html({{}}).empty());
    EXPECT_EQ(ttft_svg({{}}), "");
}

}  // namespace
}  // namespace sluice::sim
