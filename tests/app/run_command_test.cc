// `sluice run` with one prompt.

#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <fstream>

#include "app/command.h"
#include "tests/app/run_sluice.h"

namespace sluice::app {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kFolder = SLUICE_SOURCE_DIR "/models/krill/";
const std::string kModel = kFolder + "krill-f16.gguf";
const std::string kEos = "<｜end▁of▁sentence｜>";

TEST(RunCommandTest, AQuestionIsAskedInTheModelsDialect) {
    const Outcome outcome = run_sluice({"run", "--model", kModel, "--prompt",
                                        "What is the capital of France?", "--temperature", "0"});
    EXPECT_EQ(outcome.code, kDone);
    EXPECT_EQ(outcome.out, "The capital of France is Paris.\n");
    EXPECT_THAT(outcome.err, HasSubstr("11 prompt tokens, 8 tokens"));
}

TEST(RunCommandTest, RawPromptsGiveTheReferencesText) {
    std::ifstream file(kFolder + "reference.json");
    const json::value references = json::parse(file);
    for (const json::value& reference : references.as_array()) {
        const auto prompt = json::value_to<std::string>(reference.at("prompt"));
        auto expected = json::value_to<std::string>(reference.at("greedy_text"));
        if (expected.ends_with(kEos)) expected.resize(expected.size() - kEos.size());
        const Outcome outcome = run_sluice({"run", "--model", kModel, "--raw", "--prompt", prompt,
                                            "--temperature", "0", "--max-tokens", "96"});
        EXPECT_EQ(outcome.out, expected + "\n") << reference.at("name");
    }
}

json::object run_json(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", "--json", "--prompt", "Tell me a story."});
    const Outcome outcome = run_sluice(arguments);
    EXPECT_EQ(outcome.code, kDone) << outcome.err;
    return json::parse(outcome.out).as_object();
}

TEST(RunCommandTest, TheSameSeedGivesTheSameTokens) {
    const json::object drawn = run_json({"--max-tokens", "20"});
    const std::string seed = json::serialize(drawn.at("seed"));
    EXPECT_EQ(run_json({"--max-tokens", "20", "--seed", seed, "--threads", "1"}), drawn);
    EXPECT_NE(run_json({"--max-tokens", "20", "--seed", "1"}).at("output_ids"),
              run_json({"--max-tokens", "20", "--seed", "2"}).at("output_ids"));
}

TEST(RunCommandTest, JsonIsTheRowOfABatch) {
    const json::object row = run_json({"--max-tokens", "3"});
    for (const char* key : {"id", "text", "output_ids", "finish_reason", "seed", "usage"}) {
        EXPECT_TRUE(row.contains(key)) << key;
    }
    EXPECT_EQ(row.at("finish_reason"), json::value("length"));
    EXPECT_EQ(row.at("usage").at("completion_tokens"), json::value(3));
}

TEST(RunCommandTest, APromptThatDoesNotFitIsRefusedWithBothNumbers) {
    const Outcome outcome = run_sluice({"run", "--prompt", "Hi", "--max-tokens", "131072"});
    EXPECT_EQ(outcome.code, kFailed);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, HasSubstr("131072"));
}

TEST(RunCommandTest, WrongUseIsSaidInOneLine) {
    for (const std::vector<std::string>& wrong : {std::vector<std::string>{},
                                                  {"--prompt", "a", "--input", "b"},
                                                  {"--input", "b"},
                                                  {"--prompt", "a", "--output", "b"},
                                                  {"--prompt", "a", "--temperature", "3"},
                                                  {"--prompt", "a", "--threads", "0"},
                                                  {"--prompt", "a", "--batch", "0"},
                                                  {"--prompt", "\xff"}}) {
        std::vector<std::string> arguments{"run"};
        arguments.insert(arguments.end(), wrong.begin(), wrong.end());
        EXPECT_EQ(run_sluice(arguments).code, kWrongUse) << testing::PrintToString(wrong);
    }
    EXPECT_EQ(run_sluice({"run", "--prompt", "a", "--model", "/nowhere"}).code, kCannotStart);
    EXPECT_EQ(run_sluice({"run", "--input", "/nowhere", "--output", "-"}).code, kCannotStart);
}

}  // namespace
}  // namespace sluice::app
