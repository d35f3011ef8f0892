#include "gates/baseline.h"

#include <gtest/gtest.h>

namespace sluice::gates {
namespace {

template <class T>
std::string error_of(const Result<T>& result) {
    return result ? "none" : result.error().to_string();
}

constexpr std::string_view kPrompts =
    R"({"id":"a","messages":[{"role":"user","content":"hi"}],"sampling_params":{"max_new_tokens":4}})"
    "\n"
    R"({"prompt":"Once","sampling_params":{"seed":5,"temperature":0}})"
    "\n";
constexpr std::string_view kOutputs =
    R"({"id":1,"text":" upon","finish_reason":"stop"})"
    "\n"
    R"({"id":"a","text":"hello","output_ids":[7,8],"finish_reason":"length"})"
    "\n";

Baseline example() {
    auto rows = join(*parse_prompts(kPrompts, "p"), *parse_outputs(kOutputs, "o"));
    return {.name = "b",
            .created = "2026-11-30T00:00:00Z",
            .model = "m",
            .versions = R"({"engine":"native"})",
            .rows = std::move(*rows)};
}

TEST(BaselineTest, PromptsAndOutputsMeetByTheirId) {
    const Baseline baseline = example();
    ASSERT_EQ(baseline.rows.size(), 2U);
    EXPECT_EQ(baseline.rows[0].prompt.id, "\"a\"");
    EXPECT_EQ(baseline.rows[0].output.output_ids, (std::vector<std::int64_t>{7, 8}));
    EXPECT_EQ(baseline.rows[1].prompt.prompt, "Once");
    EXPECT_EQ(baseline.rows[1].output.text, " upon");
}

TEST(BaselineTest, EveryPromptHasASeed) {
    const auto prompts = parse_prompts(kPrompts, "p");
    ASSERT_TRUE(prompts);
    EXPECT_EQ((*prompts)[0].sampling, R"({"max_new_tokens":4,"seed":1000003})");
    EXPECT_EQ((*prompts)[1].sampling, R"({"seed":5,"temperature":0})");
}

TEST(BaselineTest, AFileComesBackAsItWasWritten) {
    const std::string text = to_json_lines(example());
    const auto read = parse_baseline(text, "f");
    ASSERT_TRUE(read) << error_of(read);
    EXPECT_EQ(to_json_lines(*read), text);
    EXPECT_EQ(read->model, "m");
    EXPECT_EQ(read->versions, R"({"engine":"native"})");
}

TEST(BaselineTest, MistakesAreNamedWithTheirPlace) {
    EXPECT_EQ(error_of(parse_prompts("", "p")), "p: holds no rows");
    EXPECT_EQ(error_of(parse_prompts("[]", "p")), "p:1: is no JSON object");
    EXPECT_EQ(error_of(parse_prompts("\n{}", "p")),
              "p:2: must hold either \"messages\" or \"prompt\"");
    EXPECT_EQ(error_of(parse_prompts(R"({"messages":1})", "p")), "p:1.messages: must be an array");
    EXPECT_EQ(error_of(parse_outputs(R"({"id":1})", "o")),
              "o:1.text: must hold what was generated");
    EXPECT_EQ(error_of(parse_outputs(R"({"text":"","error":{"message":"x"}})", "o")),
              "o:1.error: is the row of a request that failed");
    EXPECT_EQ(error_of(parse_outputs(R"({"text":"","output_ids":["x"]})", "o")),
              "o:1.output_ids: must be an array of token ids");
    EXPECT_EQ(error_of(parse_baseline(R"({"prompt":"a","text":"b"})", "f")),
              "f:1: is no baseline of this version; `sluice gate baseline save` makes one");
    EXPECT_EQ(error_of(parse_baseline(R"({"baseline":1})", "f")), "f: holds no prompts");
}

TEST(BaselineTest, NothingIsLeftOutWhenJoining) {
    const auto prompts = *parse_prompts(kPrompts, "p");
    EXPECT_EQ(error_of(join(prompts, {{.id = "\"a\""}})), "1: this prompt has no output");
    EXPECT_EQ(error_of(join(prompts, {{.id = "1"}, {.id = "\"a\""}, {.id = "9"}})),
              "9: this output has no prompt");
    EXPECT_EQ(error_of(join(prompts, {{.id = "1"}, {.id = "1"}})), "1: two outputs have this id");
}

TEST(BaselineTest, ADifferenceIsToldWithItsPlace) {
    const Baseline baseline = example();
    std::vector<BaselineOutput> outputs{baseline.rows[0].output, baseline.rows[1].output};
    auto items = compare(baseline, outputs, "batch 4", 1.0);
    ASSERT_EQ(items.size(), 1U);
    EXPECT_EQ(items[0].found, "2 of 2");
    EXPECT_EQ(items[0].verdict, Verdict::kPass);

    outputs[0].output_ids = {7, 9};
    outputs[1].finish_reason = "length";
    items = compare(baseline, outputs, "batch 4", 1.0);
    ASSERT_EQ(items.size(), 3U);
    EXPECT_EQ(items[0].found, "differs: token 1");
    EXPECT_EQ(items[1].found, "differs: finish reason length");
    EXPECT_EQ(items[2].verdict, Verdict::kFail);

    outputs[0].output_ids.clear();
    outputs[0].text = "help!";
    outputs.pop_back();
    items = compare(baseline, outputs, "batch 4", 0.0);
    EXPECT_EQ(items[0].found, "differs: text from byte 3");
    EXPECT_EQ(items[1].found, "differs: no answer");
    EXPECT_EQ(items[2].verdict, Verdict::kPass) << "none need be equal";
}

TEST(BaselineTest, ARowIsAskedInTheProtocolsNames) {
    const Baseline baseline = example();
    EXPECT_EQ(request_path(baseline.rows[0].prompt), "/chat/completions");
    EXPECT_EQ(request_body(baseline.rows[0].prompt, "m"),
              R"({"model":"m","messages":[{"role":"user","content":"hi"}],"max_tokens":4,)"
              R"("seed":1000003,"stream":true,"stream_options":{"include_usage":true}})");
    EXPECT_EQ(request_path(baseline.rows[1].prompt), "/completions");
}

}  // namespace
}  // namespace sluice::gates
