#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "port/generate.h"
#include "tests/port/random_float.h"

namespace sluice::port {
namespace {

constexpr std::string_view kRid = "0123456789abcdef0123456789abcdef";
constexpr float kLargest = std::numeric_limits<float>::max();

std::string with(std::string_view fields, std::string_view meta = "") {
    return "{" + std::string(fields) + (fields.empty() ? "" : ",") + "\"meta_info\":{\"id\":\"" +
           std::string(kRid) + "\"" + std::string(meta) + "}}";
}

void expect_refused(std::string_view json, std::string_view place) {
    const Result<GenerateFrame> frame = parse_generate_frame(json);
    ASSERT_FALSE(frame.has_value()) << json;
    EXPECT_EQ(frame.error().place(), place) << json;
}

GenerateFrame frame_with(float logprob) {
    GenerateFrame frame;
    frame.rid = kRid;
    frame.output_ids = {1};
    frame.output_logprobs = {{.chosen = {.token = 1, .logprob = logprob}, .top = {}}};
    return frame;
}

float round_trip(float logprob) {
    const auto back = parse_generate_frame(to_json(frame_with(logprob)));
    EXPECT_TRUE(back.has_value()) << back.error().to_string();
    return back ? back->output_logprobs.at(0).chosen.logprob : 0.0F;
}

TEST(GenerateFrameTest, NamesOnTheWireAreThoseOfTheContract) {
    GenerateFrame frame = frame_with(-0.25F);
    frame.output_logprobs[0].top = {{.token = 1, .logprob = -0.25F}, {.token = 5, .logprob = -2}};
    frame.input_logprobs = {{.chosen = {.token = 9, .logprob = -1e-7F}, .top = {}}};
    frame.prompt_tokens = 10;
    frame.cached_tokens = 4;
    frame.cached_tokens_by_source = {{"pool", 4}};
    frame.completion_tokens = 1;
    frame.computed_tokens = 6;
    frame.drafted = 3;
    frame.accepted = 2;
    frame.finish_reason = {.type = FinishType::kStop, .matched = 1, .message = "a\nb"};
    EXPECT_EQ(to_json(frame),
              R"({"output_ids":[1],"output_logprobs":[[-0.25,1]],)"
              R"("output_top_logprobs":[[[-0.25,1],[-2,5]]],"input_logprobs":[[-1e-07,9]],)"
              R"("meta_info":{"id":"0123456789abcdef0123456789abcdef","prompt_tokens":10,)"
              R"("cached_tokens":4,"cached_tokens_by_source":{"pool":4},"completion_tokens":1,)"
              R"("computed_tokens":6,"drafted":3,"accepted":2,)"
              R"("finish_reason":{"type":"stop","matched":1,"message":"a\nb"}}})");
}

TEST(GenerateFrameTest, SaysHowItCameByItsBlocks) {
    GenerateFrame frame = frame_with(-1);
    frame.kv_decision = KvDecision{.loads = {{.source = "node",
                                              .choice = "load",
                                              .tokens = 128,
                                              .predicted_us = 1,
                                              .compute_us = 2,
                                              .queue_us = 3,
                                              .took_us = 4}},
                                   .compute_predicted_us = 5,
                                   .compute_took_us = 6};
    const std::string json = to_json(frame);
    EXPECT_NE(json.find(R"("kv_decision":{"loads":[{"source":"node","choice":"load","tokens":128,)"
                        R"("predicted_us":1,"compute_us":2,"queue_us":3,"took_us":4}],)"
                        R"("compute_predicted_us":5,"compute_took_us":6}})"),
              std::string::npos)
        << json;
    EXPECT_EQ(parse_generate_frame(json), frame);
    const auto bad = parse_generate_frame(
        R"({"output_ids":[],"meta_info":{"id":"0123456789abcdef0123456789abcdef",)"
        R"("kv_decision":{"loads":[1]}}})");
    ASSERT_FALSE(bad.has_value());
    EXPECT_EQ(bad.error().place(), "meta_info.kv_decision.loads[0]");
}

TEST(GenerateFrameTest, AHandOverNamesItsBlocks) {
    GenerateFrame frame;
    frame.rid = kRid;
    frame.output_ids = {5};
    frame.kv = KvHandover{.source = {.url = "http://w:1",
                                     .hold = std::string(kRid),
                                     .keys = {sha256("a")},
                                     .tail_tokens = 3},
                          .hold_until_ms = 30'000};
    const std::string json = to_json(frame);
    EXPECT_NE(
        json.find(R"("kv":{"url":"http://w:1","hold":"0123456789abcdef0123456789abcdef",)"
                  R"("keys":["ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"],)"
                  R"("tail_tokens":3,"hold_until_ms":30000}})"),
        std::string::npos)
        << json;
    EXPECT_EQ(parse_generate_frame(json), frame);
}

TEST(GenerateFrameTest, WhatHasEndedHandsNothingOver) {
    const std::string kv = R"(,"kv":{"hold":"0123456789abcdef0123456789abcdef"})";
    EXPECT_TRUE(parse_generate_frame(with("", kv)).has_value());
    expect_refused(with("", kv + R"(,"finish_reason":{"type":"stop"})"), "meta_info.kv");
    expect_refused(with("", R"(,"kv":{})"), "meta_info.kv.hold");
}

TEST(GenerateFrameTest, AHeartbeatHasNoTokens) {
    const auto frame = parse_generate_frame(
        with("\"output_ids\":[]", ",\"computed_tokens\":512,\"finish_reason\":null"));
    ASSERT_TRUE(frame.has_value()) << frame.error().to_string();
    EXPECT_TRUE(frame->output_ids.empty());
    EXPECT_EQ(frame->computed_tokens, 512U);
    EXPECT_FALSE(frame->finish_reason.has_value());
}

TEST(GenerateFrameTest, FloatsComeBackBitByBit) {
    for (const float value : {0.0F, -0.0F, 1.0F, -1.0F, kLargest, -kLargest, 0x1p-126F, 0x1p-149F,
                              -0x1.fffffep-127F, 16'777'216.0F, 1e10F, 9.99999e20F, -0.1F}) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(round_trip(value)),
                  std::bit_cast<std::uint32_t>(value))
            << value;
    }
    std::mt19937_64 random(2);
    for (int round = 0; round < 200'000; ++round) {
        const float value = test::random_float(random, -kLargest, kLargest);
        ASSERT_EQ(std::bit_cast<std::uint32_t>(round_trip(value)),
                  std::bit_cast<std::uint32_t>(value))
            << value;
    }
}

TEST(GenerateFrameTest, AProbabilityOfZeroIsNull) {
    const float never = -std::numeric_limits<float>::infinity();
    EXPECT_NE(to_json(frame_with(never)).find("[[null,1]]"), std::string::npos);
    EXPECT_EQ(round_trip(never), never);
}

GenerateFrame random_frame(std::mt19937_64& random) {
    const auto below = [&random](std::uint64_t limit) { return random() % limit; };
    const auto token = [&random] { return static_cast<TokenId>(random() >> 33); };
    const auto entry = [&] {
        return TokenLogprob{.token = token(), .logprob = test::random_float(random, -1e4F, 0.0F)};
    };
    const auto positions = [&](std::size_t count) {
        std::vector<PositionLogprobs> result(count);
        const bool top = below(2) == 0;
        for (PositionLogprobs& position : result) {
            position.chosen = entry();
            for (std::uint64_t i = top ? below(4) : 0; i > 0; --i) position.top.push_back(entry());
        }
        return result;
    };
    GenerateFrame frame;
    for (std::size_t i = 0; i < kRidLength; ++i) frame.rid += "0123456789abcdef"[below(16)];
    for (std::uint64_t i = below(5); i > 0; --i) frame.output_ids.push_back(token());
    if (below(2) == 0) frame.output_logprobs = positions(frame.output_ids.size());
    if (below(2) == 0) frame.input_logprobs = positions(below(5));
    for (const char* source : {"pool", "dram", "a \"quoted\" one"}) {
        if (below(2) == 0) frame.cached_tokens_by_source[source] = random();
    }
    frame.prompt_tokens = random();
    frame.cached_tokens = random();
    frame.completion_tokens = random() >> below(64);
    frame.computed_tokens = random() >> below(64);
    frame.drafted = below(10);
    frame.accepted = below(10);
    if (below(2) == 0) {
        FinishReason reason;
        reason.type = static_cast<FinishType>(below(4));
        if (below(2) == 0) reason.matched = token();
        for (std::uint64_t i = below(9); i > 0; --i) {
            reason.message += static_cast<char>(below(128));
        }
        if (below(2) == 0) reason.code = "kv_unavailable";
        frame.finish_reason = reason;
    } else if (below(2) == 0) {
        frame.kv.emplace();
        frame.kv->source.hold = frame.rid;
        for (std::uint64_t i = below(4); i > 0; --i)
            frame.kv->source.keys.push_back(sha256(std::to_string(random())));
        frame.kv->source.tail_tokens = static_cast<std::uint32_t>(below(64));
        frame.kv->hold_until_ms = random();
    }
    return frame;
}

TEST(GenerateFrameTest, RandomFramesComeBackEqual) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 20'000; ++round) {
        const GenerateFrame frame = random_frame(random);
        const auto back = parse_generate_frame(to_json(frame));
        ASSERT_TRUE(back.has_value()) << back.error().to_string() << '\n' << to_json(frame);
        ASSERT_EQ(*back, frame) << to_json(frame);
    }
}

TEST(GenerateFrameTest, AMessageThatIsNotUtf8IsStillValidJson) {
    GenerateFrame frame = frame_with(-1.0F);
    frame.finish_reason = {
        .type = FinishType::kError,
        .matched = {},
        .message = "a\xff\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80 \xc3\xa9 \xe2\x82"};
    const auto back = parse_generate_frame(to_json(frame));
    ASSERT_TRUE(back.has_value()) << back.error().to_string();
    std::string expected = "a";
    for (int i = 0; i < 10; ++i) expected += "\uFFFD";
    EXPECT_EQ(back->finish_reason->message, expected + " \u00E9 \uFFFD\uFFFD");
}

TEST(GenerateFrameTest, AWrongFieldIsNamedWithItsPlace) {
    expect_refused("{}", "meta_info");
    expect_refused(R"({"meta_info":{}})", "meta_info.id");
    expect_refused(with(R"("output_ids":[1,"2"])"), "output_ids[1]");
    expect_refused(with(R"("output_ids":[1],"output_logprobs":[[0]])"), "output_logprobs[0]");
    expect_refused(with(R"("output_ids":[1],"output_logprobs":[["a",1]])"), "output_logprobs[0]");
    expect_refused(with(R"("output_ids":[1],"output_logprobs":[[0,1],[0,2]])"), "output_logprobs");
    expect_refused(with(R"("output_top_logprobs":[[]])"), "output_top_logprobs");
    expect_refused(with(R"("output_ids":[1],"output_logprobs":[[0,1]],"output_top_logprobs":[7])"),
                   "output_top_logprobs[0]");
    expect_refused(
        with(R"("output_ids":[1],"output_logprobs":[[0,1]],"output_top_logprobs":[[[0,1],[0]]])"),
        "output_top_logprobs[0][1]");
    expect_refused(with("", R"(,"drafted":-1)"), "meta_info.drafted");
    expect_refused(with("", R"(,"cached_tokens_by_source":{"pool":1.5})"),
                   "meta_info.cached_tokens_by_source.pool");
    expect_refused(with("", R"(,"finish_reason":{"type":"tired"})"),
                   "meta_info.finish_reason.type");
    expect_refused(with("", R"(,"finish_reason":{})"), "meta_info.finish_reason.type");
    expect_refused(with("", R"(,"finish_reason":{"type":"stop","matched":"x"})"),
                   "meta_info.finish_reason.matched");
}

}  // namespace
}  // namespace sluice::port
