// `sluice model` as scripts use it.

#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "app/command.h"
#include "tests/app/run_sluice.h"
#include "tests/app/temporary_folder.h"

namespace sluice::app {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const std::string kFolder = SLUICE_SOURCE_DIR "/models/krill/";
const std::string kModel = kFolder + "krill-f16.gguf";

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

json::array references() { return json::parse(read_file(kFolder + "reference.json")).as_array(); }

std::string string_of(const json::value& value) { return std::string(value.as_string()); }

std::string joined(const json::array& ids) {
    std::string text;
    for (const json::value& id : ids) text += (text.empty() ? "" : ",") + json::serialize(id);
    return text;
}

json::array tokens(const std::vector<std::string>& arguments) {
    std::vector<std::string> all{"model", "tokenize"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome outcome = run_sluice(all);
    EXPECT_EQ(outcome.code, kDone) << outcome.err;
    return json::parse(outcome.out).at("ids").as_array();
}

TEST(ModelCommandTest, TokenizeWithControlGivesTheReferencesIds) {
    for (const json::value& reference : references()) {
        EXPECT_EQ(tokens({kModel, "--control", "--text", string_of(reference.at("prompt"))}),
                  reference.at("prompt_ids").as_array())
            << reference.at("name");
    }
}

TEST(ModelCommandTest, TokenizeWithoutControlGivesNoControlToken) {
    for (const json::value& id : tokens({"krill", "--text", "<｜User｜><think>"})) {
        EXPECT_LT(id.as_int64(), 4080);
        EXPECT_GT(id.as_int64(), 2);
    }
}

TEST(ModelCommandTest, TextComesFromAFileToo) {
    const TemporaryFile file("Hello\n");
    EXPECT_EQ(tokens({kFolder + "tokenizer.json", "--text-file", file.path()}),
              tokens({kModel, "--text", "Hello\n"}));
}

TEST(ModelCommandTest, DetokenizeGivesTheBytesBack) {
    const std::string text = "h\xc3\xa9llo \xe4\xbd\xa0\xe5\xa5\xbd\n";
    const std::string ids = joined(tokens({"krill", "--text", text}));
    EXPECT_EQ(run_sluice({"model", "detokenize", "krill", "--ids", ids}).out, text);
    const Outcome as_json = run_sluice({"model", "detokenize", "krill", "--ids", ids, "--json"});
    EXPECT_EQ(json::parse(as_json.out).at("text"), json::value(text));
}

TEST(ModelCommandTest, DetokenizeTakesWhatTokenizePrints) {
    const TemporaryFile file(run_sluice({"model", "tokenize", "krill", "--text", "a fox"}).out);
    EXPECT_EQ(run_sluice({"model", "detokenize", "krill", "--ids-file", file.path()}).out, "a fox");
}

TEST(ModelCommandTest, IdsThatAreNoneAreRefusedByName) {
    const Outcome unknown = run_sluice({"model", "detokenize", "krill", "--ids", "5,4096"});
    EXPECT_EQ(unknown.code, kFailed);
    EXPECT_THAT(unknown.err, HasSubstr("4096"));
    for (const char* ids : {"x", "1,-2", "1;2", "99999999999", "{\"ids\":[-1]}", "{\"ids\":"}) {
        const Outcome outcome = run_sluice({"model", "detokenize", "krill", "--ids", ids});
        EXPECT_EQ(outcome.code, kWrongUse) << ids;
        EXPECT_THAT(outcome.err, HasSubstr("--ids")) << ids;
    }
}

TEST(ModelCommandTest, RenderPrintsThePromptAndItsIds) {
    const TemporaryFile request(
        R"({"messages":[{"role":"user","content":"What is the capital of France?"}]})");
    const json::value reference = references().at(0);
    EXPECT_EQ(run_sluice({"model", "render", kModel, request.path()}).out,
              string_of(reference.at("prompt")));
    const Outcome outcome = run_sluice({"model", "render", "krill", request.path(), "--json"});
    const json::object answer = json::parse(outcome.out).as_object();
    EXPECT_EQ(answer.at("prompt"), reference.at("prompt"));
    EXPECT_EQ(answer.at("ids"), reference.at("prompt_ids"));
}

TEST(ModelCommandTest, RenderNeedsNoModelIfADialectIsNamed) {
    const TemporaryFile request(
        R"({"messages":[{"role":"user","content":"Hi"}],"thinking":{"type":"enabled"}})");
    const Outcome outcome =
        run_sluice({"model", "render", "--dialect", "v4.1", request.path(), "--json"});
    const json::object answer = json::parse(outcome.out).as_object();
    EXPECT_THAT(string_of(answer.at("prompt")), HasSubstr("<think>"));
    EXPECT_FALSE(answer.contains("ids"));
    EXPECT_EQ(run_sluice({"model", "render", request.path()}).code, kWrongUse);
    EXPECT_EQ(run_sluice({"model", "render", kFolder + "tokenizer.json", request.path()}).code,
              kWrongUse);
}

TEST(ModelCommandTest, ABadRequestIsAProtocolErrorThatNamesTheField) {
    const TemporaryFile request(R"({"messages":[{"role":"user","content":5}]})");
    const Outcome text = run_sluice({"model", "render", "krill", request.path()});
    EXPECT_EQ(text.code, kFailed);
    EXPECT_THAT(text.err, StartsWith("sluice: messages[0].content: "));
    const Outcome outcome = run_sluice({"model", "render", "krill", request.path(), "--json"});
    EXPECT_EQ(outcome.code, kFailed);
    EXPECT_EQ(json::parse(outcome.out).at("error").at("param"), json::value("messages[0].content"));
}

TEST(ModelCommandTest, LogitsOfManyChunksAreTheReferences) {
    json::array ids = references().at(1).at("prompt_ids").as_array();
    const std::string prompt = joined(ids);
    const std::string greedy = joined(references().at(1).at("greedy_ids").as_array());
    const TemporaryFile out("");
    const Outcome outcome = run_sluice(
        {"model", "logits", kModel, "--ids", prompt + "," + greedy, "--out", out.path(), "--json"});
    ASSERT_EQ(outcome.code, kDone) << outcome.err;
    const json::value answer = json::parse(outcome.out);
    EXPECT_EQ(answer.at("positions"), json::value(110));
    EXPECT_EQ(answer.at("vocabulary"), json::value(4096));

    const std::string ours = read_file(out.path());
    const std::string theirs = read_file(kFolder + "reference_logits_story.f32");
    ASSERT_EQ(ours.size(), theirs.size());
    double error = 0;
    double power = 0;
    for (std::size_t at = 0; at < ours.size(); at += sizeof(float)) {
        float a = 0;
        float b = 0;
        std::memcpy(&a, ours.data() + at, sizeof(a));
        std::memcpy(&b, theirs.data() + at, sizeof(b));
        error += (double{a} - b) * (double{a} - b);
        power += double{b} * b;
    }
    EXPECT_LE(error / power, 1e-6);
}

TEST(ModelCommandTest, LogitsDoNotDependOnHowManyPositionsFollow) {
    std::string ids = "0,4083";
    for (int i = 0; i < 598; ++i) ids += "," + std::to_string(300 + i * 7919 % 3000);
    const TemporaryFile longer("");
    const TemporaryFile shorter("");
    ASSERT_EQ(run_sluice({"model", "logits", "krill", "--ids", ids, "--out", longer.path()}).code,
              kDone);
    std::string cut = ids;
    for (int i = 0; i < 60; ++i) cut.erase(cut.rfind(','));
    ASSERT_EQ(run_sluice({"model", "logits", "krill", "--ids", cut, "--out", shorter.path(),
                          "--threads", "1"})
                  .code,
              kDone);
    const std::string prefix = read_file(shorter.path());
    EXPECT_EQ(prefix.size(), std::size_t{540} * 4096 * sizeof(float));
    EXPECT_TRUE(read_file(longer.path()).starts_with(prefix));
}

TEST(ModelCommandTest, LogitsOfATokenThatIsNoneAreRefused) {
    const TemporaryFile out("");
    const Outcome outcome =
        run_sluice({"model", "logits", "krill", "--ids", "1,4096", "--out", out.path()});
    EXPECT_EQ(outcome.code, kFailed);
    EXPECT_THAT(outcome.err, HasSubstr("ids[1]"));
    EXPECT_THAT(outcome.err, HasSubstr("4096"));
}

TEST(ModelCommandTest, PackKeepsTheWeightsOfASmallModelToo) {
    const TemporaryFolder folder;
    ::setenv("SLUICE_PACKED", folder.path().c_str(), 1);
    const auto pack = [] {
        return json::parse(run_sluice({"model", "pack", "krill", "--json"}).out).as_object();
    };
    const json::object first = pack();
    EXPECT_EQ(first.at("new"), json::value(true));
    EXPECT_GT(first.at("bytes").to_number<std::uint64_t>(), 8'000'000U);
    const std::string file(first.at("file").as_string());
    EXPECT_TRUE(file.starts_with(folder.path())) << file;
    EXPECT_GE(std::filesystem::file_size(file), first.at("bytes").to_number<std::uint64_t>());
    // The checkpoint has lain there for longer than a file system's clock ticks, or is packed again.
    EXPECT_EQ(pack().at("fingerprint"), first.at("fingerprint"));
    EXPECT_THAT(run_sluice({"model", "pack", "krill"}).out, HasSubstr(file));
    ::setenv("SLUICE_PACKED", "/proc/none", 1);
    EXPECT_EQ(run_sluice({"model", "pack", "krill"}).code, kCannotStart);
    ::unsetenv("SLUICE_PACKED");
}

TEST(ModelCommandTest, InfoSaysWhatServingCosts) {
    const json::object info =
        json::parse(run_sluice({"model", "info", "krill", "--json"}).out).as_object();
    EXPECT_EQ(info.at("context_tokens"), json::value(131'072));
    EXPECT_EQ(info.at("dialect"), json::value("deepseek-v4.1"));
    EXPECT_EQ(info.at("kv_bytes_per_token"), json::value(6 * 96 * 4));
    EXPECT_EQ(info.at("hyper_parameters").at("expert_count"), json::value(8));
    EXPECT_EQ(info.at("fingerprint").as_string().size(), 64U);
    EXPECT_EQ(info.at("tokenizer_digest").as_string().size(), 64U);
    EXPECT_GT(info.at("packed_weight_bytes").to_number<std::uint64_t>(), 8'000'000U);
    const json::object& memory = info.at("memory").as_object();
    // The model's cache, and its head's: one layer of 128 positions for each of 128 sequences.
    EXPECT_EQ(memory.at("kv_pool"), json::value(131'072 * 2304 + 128 * 128 * 96 * 4));
    EXPECT_GT(memory.at("total").to_number<std::uint64_t>(), 131'072U * 2304U + 8'000'000U);
    EXPECT_TRUE(info.at("unsupported").is_null());
    std::uint64_t tensors = 0;
    for (const json::value& row : info.at("tensors").as_array()) {
        tensors += row.at("tensors").to_number<std::uint64_t>();
    }
    EXPECT_EQ(tensors, 128U);
    EXPECT_THAT(run_sluice({"model", "info", "krill"}).out, HasSubstr("2304 bytes a token"));
}

TEST(ModelCommandTest, AModelThatIsNotThereCannotStart) {
    const TemporaryFile empty("");
    for (const std::string& model : {std::string("/nowhere/m.gguf"), empty.path()}) {
        for (const std::vector<std::string>& verb :
             {std::vector<std::string>{"info", model},
              {"tokenize", model, "--text", "a"},
              {"detokenize", model, "--ids", "1"},
              {"logits", model, "--ids", "1", "--out", "/dev/null"}}) {
            std::vector<std::string> arguments{"model"};
            arguments.insert(arguments.end(), verb.begin(), verb.end());
            const Outcome outcome = run_sluice(arguments);
            EXPECT_EQ(outcome.code, kCannotStart) << verb.front() << " " << model;
            EXPECT_THAT(outcome.err, HasSubstr(model));
            EXPECT_THAT(outcome.out, IsEmpty());
        }
    }
}

}  // namespace
}  // namespace sluice::app
