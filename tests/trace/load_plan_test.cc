#include "trace/load_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "trace/prompt_maker.h"

namespace sluice::trace {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

std::string error_of(std::string_view mix) {
    const auto shapes = parse_mix(mix);
    return shapes ? "none" : shapes.error().message();
}

TEST(LoadPlanTest, AMixNamesShapesKindsAndWeights) {
    const auto shapes = parse_mix("512/128,4000/64:seeded*0.25,9/8:json_schema");
    ASSERT_TRUE(shapes) << shapes.error().to_string();
    ASSERT_EQ(shapes->size(), 3U);
    EXPECT_EQ((*shapes)[0].input_tokens, 512U);
    EXPECT_EQ((*shapes)[0].kind, RequestKind::kText);
    EXPECT_EQ((*shapes)[1].kind, RequestKind::kSeeded);
    EXPECT_EQ((*shapes)[1].weight, 0.25);
    EXPECT_EQ((*shapes)[2].output_tokens, 8U);
    EXPECT_TRUE(parse_mix("chat"));
    EXPECT_TRUE(parse_mix("code"));
}

TEST(LoadPlanTest, AWrongMixIsRefusedWithItsShape) {
    for (const char* mix : {"", "5", "5/", "/5", "0/5", "5/0", "5/5*0", "5/5*-1", "5/5*inf",
                            "5/5*nan", "-5/5", "5/5,", "99999999999/5"})
        EXPECT_NE(error_of(mix).find("must be INPUT/OUTPUT tokens"), std::string::npos) << mix;
    EXPECT_EQ(error_of("5/5:seded"), "\"seded\" is no kind of request; did you mean 'seeded'?");
}

TEST(LoadPlanTest, WeightsAndRateHoldInTheMean) {
    const auto plan = plan_load(*parse_mix("10/1*3,20/1"), {.requests = 20'000, .rate = 50.0});
    std::map<std::uint32_t, double> count;
    for (const auto& request : plan) ++count[request.input_tokens];
    EXPECT_NEAR(count[10] / 20'000, 0.75, 0.01);
    EXPECT_NEAR(static_cast<double>(plan.back().at.count()) / 1e6, 400.0, 10.0);
    // Of a Poisson process: gaps with a standard deviation as large as their mean.
    double squares = 0.0;
    for (std::size_t i = 1; i < plan.size(); ++i) {
        const double gap = static_cast<double>((plan[i].at - plan[i - 1].at).count()) / 1e6;
        squares += gap * gap;
    }
    EXPECT_NEAR(squares / 20'000 / (2 * 0.02 * 0.02), 1.0, 0.05);
}

TEST(LoadPlanTest, OneSeedIsOnePlan) {
    const auto mix = *parse_mix("chat");
    const auto times = [&](std::uint64_t seed) {
        std::vector<microseconds> at;
        for (const auto& request : plan_load(mix, {.requests = 50, .rate = 9.0, .seed = seed}))
            at.push_back(request.at);
        return at;
    };
    EXPECT_EQ(times(1), times(1));
    EXPECT_NE(times(1), times(2));
}

TEST(LoadPlanTest, ATraceKeepsItsTimesOrIsStretchedToARate) {
    Trace trace;
    for (int i = 0; i < 5; ++i) {
        trace.requests.push_back({.arrival = milliseconds(100 * i),
                                  .input_tokens = 7,
                                  .output_tokens = 3,
                                  .blocks = {1, 2}});
    }
    const auto own = plan_load(trace, {.requests = 99});
    ASSERT_EQ(own.size(), 5U);
    EXPECT_EQ(own[4].at, milliseconds(400));
    EXPECT_EQ(own[4].blocks, (std::vector<std::uint32_t>{1, 2}));
    const auto slow = plan_load(trace, {.requests = 3, .rate = 1.0});
    ASSERT_EQ(slow.size(), 3U);
    EXPECT_EQ(slow[1].at, milliseconds(1000));
    EXPECT_EQ(slow[2].at, milliseconds(2000));
}

TEST(PromptMakerTest, EqualBlocksAreEqualTextInFront) {
    const PromptMaker maker(1.0);
    const PlannedRequest first{
        .input_tokens = 1200, .output_tokens = 1, .text_seed = 1, .blocks = {5, 6, 7}};
    PlannedRequest second = first;
    second.text_seed = 2;
    second.blocks.back() = 8;
    const std::string a = maker.prompt(first);
    const std::string b = maker.prompt(second);
    EXPECT_EQ(std::ranges::count(a, ' ') + 1, 1200);
    std::size_t same = 0;
    while (same < a.size() && a[same] == b[same]) ++same;
    const auto shared = std::count(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(same), ' ');
    EXPECT_GE(shared, 1023);
    EXPECT_LT(shared, 1060);
    second.blocks = first.blocks;
    EXPECT_EQ(maker.prompt(second), a) << "a prompt covered by its blocks has no text of its own";
}

TEST(PromptMakerTest, ItIsCalibratedByOneCount) {
    const PlannedRequest request{.input_tokens = 100, .output_tokens = 1, .text_seed = 1};
    const std::string text = PromptMaker::calibrated(200, 400).prompt(request);
    EXPECT_EQ(std::ranges::count(text, ' ') + 1, 50);
    // A server that counts nothing must not make prompts without end.
    const std::string bounded = PromptMaker::calibrated(200, 0).prompt(request);
    EXPECT_EQ(std::ranges::count(bounded, ' ') + 1, 200);
}

}  // namespace
}  // namespace sluice::trace
