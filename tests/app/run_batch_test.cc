// `sluice run --input`: the rows are the same whatever the batch, and whatever happened in between.

#include <gmock/gmock.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "app/command.h"
#include "base/subprocess.h"
#include "tests/app/run_sluice.h"

namespace sluice::app {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::SizeIs;

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& path) {
    std::ifstream file(path);
    Lines lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
}

Lines sorted(Lines lines) {
    std::ranges::sort(lines);
    return lines;
}

/// Rows of every kind, long enough to be interrupted; the rows named "bad" are.
std::string input_rows() {
    std::ostringstream rows;
    for (int i = 0; i < 8; ++i) {
        rows << R"({"prompt":"Tell me a story number )" << i << R"("})" << "\n";
        rows << R"({"id":"chat-)" << i << R"(","messages":[{"role":"user","content":"Count to )"
             << i << R"("}],"sampling_params":{"temperature":0.5,"max_new_tokens":30}})" << "\n";
        rows << R"({"id":)" << 1000 + i << R"(,"input_ids":[0,4083,623,318,)" << 300 + i
             << R"(],"sampling_params":{"seed":)" << i << R"(,"ignore_eos":true}})" << "\n\n";
    }
    rows << R"({"id":"bad","prompt":"a","sampling_params":{"top_p":2}})" << "\n";
    return rows.str();
}

std::vector<std::string> command(const std::string& input, const std::string& output,
                                 const std::string& batch) {
    return {"run", "--input",      input, "--output",      output, "--batch",   batch, "--seed",
            "11",  "--max-tokens", "60",  "--temperature", "0.9",  "--threads", "1"};
}

/// What an undisturbed run writes.
Lines expected_rows(const std::string& input) {
    const TemporaryFile output("");
    const Outcome outcome = run_sluice(command(input, output.path(), "1"));
    EXPECT_EQ(outcome.code, kFailed) << "there is a bad row";
    return sorted(lines_of(output.path()));
}

TEST(RunBatchTest, TheBatchChangesNoRow) {
    const TemporaryFile input(input_rows());
    const Lines expected = expected_rows(input.path());
    EXPECT_THAT(expected, SizeIs(25));
    const TemporaryFile output("");
    EXPECT_EQ(run_sluice(command(input.path(), output.path(), "7")).code, kFailed);
    EXPECT_EQ(sorted(lines_of(output.path())), expected);
}

/// Sends `signal` to a run once it has written `rows` rows; how it ended.
std::optional<ExitStatus> disturb(const std::vector<std::string>& arguments,
                                  const std::string& output, std::size_t rows, int signal) {
    SpawnOptions options;
    options.argv = {SLUICE_BINARY_DIR "/sluice"};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    auto child = Subprocess::spawn(options);
    EXPECT_TRUE(child);
    while (!child->poll() && lines_of(output).size() < rows) std::this_thread::yield();
    child->signal(signal);
    return child->wait(std::chrono::minutes(1));
}

TEST(RunBatchTest, AKilledRunGoesOnAndWritesTheSameRows) {
    const TemporaryFile input(input_rows());
    const Lines expected = expected_rows(input.path());
    for (const std::string batch : {"1", "7"}) {
        const TemporaryFile output("");
        const auto arguments = command(input.path(), output.path(), batch);
        const auto killed = disturb(arguments, output.path(), 4, SIGKILL);
        ASSERT_TRUE(killed);
        EXPECT_EQ(killed->kind, ExitStatus::Kind::kSignalled);
        // As if it had died in the middle of a row.
        std::ofstream(output.path(), std::ios::app) << expected.front().substr(0, 20);
        const Outcome resumed = run_sluice(arguments);
        EXPECT_EQ(resumed.code, kFailed);
        EXPECT_THAT(resumed.err, HasSubstr("done before"));
        EXPECT_EQ(sorted(lines_of(output.path())), expected) << "batch " << batch;
    }
}

TEST(RunBatchTest, CtrlCEndsCleanlyAndTheSameCommandGoesOn) {
    const TemporaryFile input(input_rows());
    const Lines expected = expected_rows(input.path());
    const TemporaryFile output("");
    const auto arguments = command(input.path(), output.path(), "3");
    const auto ended = disturb(arguments, output.path(), 2, SIGINT);
    ASSERT_TRUE(ended);
    EXPECT_EQ(ended->value, kInterrupted) << ended->describe();
    for (const std::string& line : lines_of(output.path())) {
        EXPECT_TRUE(std::ranges::binary_search(expected, line)) << line;
    }
    EXPECT_LT(lines_of(output.path()).size(), expected.size());
    EXPECT_EQ(run_sluice(arguments).code, kFailed);
    EXPECT_EQ(sorted(lines_of(output.path())), expected);
}

TEST(RunBatchTest, ADoneRunHasNothingToDo) {
    const TemporaryFile input("{\"prompt\":\"Hi\",\"sampling_params\":{\"max_tokens\":3}}\n");
    const TemporaryFile output("");
    const std::vector<std::string> arguments{"run",      "--input",     input.path(),
                                             "--output", output.path(), "--json"};
    EXPECT_EQ(run_sluice(arguments).code, kDone);
    const Lines before = lines_of(output.path());
    const Outcome again = run_sluice(arguments);
    EXPECT_EQ(again.code, kDone);
    EXPECT_EQ(lines_of(output.path()), before);
    const json::object summary = json::parse(again.out).as_object();
    EXPECT_EQ(summary.at("rows"), json::value(0));
    EXPECT_EQ(summary.at("skipped"), json::value(1));
}

/// The rows that `input` gives, by id.
std::map<std::string, json::object> rows_of(const std::string& input, int code) {
    const TemporaryFile in(input);
    const TemporaryFile out("");
    EXPECT_EQ(run_sluice({"run", "--input", in.path(), "--output", out.path(), "--max-tokens", "4",
                          "--temperature", "0"})
                  .code,
              code);
    std::map<std::string, json::object> rows;
    for (const std::string& line : lines_of(out.path())) {
        json::object row = json::parse(line).as_object();
        const std::string id = json::serialize(row.at("id"));
        rows[id] = std::move(row);
    }
    return rows;
}

TEST(RunBatchTest, ABadRowIsARowWithAnErrorAndStopsNothing) {
    const auto rows = rows_of(
        "{\"prompt\":\"Hi\"}\n"
        "nonsense\n"
        "{\"id\":\"none\"}\n"
        "{\"id\":\"both\",\"prompt\":\"a\",\"input_ids\":[1]}\n"
        "{\"id\":\"slip\",\"prompt\":\"a\",\"sampling_parms\":{}}\n"
        "{\"id\":\"outside\",\"prompt\":\"a\",\"temperature\":1}\n"
        "{\"id\":\"unknown\",\"prompt\":\"a\",\"sampling_params\":{\"temprature\":1}}\n"
        "{\"id\":\"type\",\"messages\":[{\"role\":\"user\",\"content\":1}]}\n"
        "{\"id\":\"token\",\"input_ids\":[1,99999]}\n"
        "{\"id\":\"empty\",\"input_ids\":[]}\n"
        "{\"id\":\"schema\",\"prompt\":\"a\",\"sampling_params\":{\"regex\":\"a\"}}\n"
        "{\"id\":\"tools\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
        "\"tools\":[{\"type\":\"function\"}]}\n"
        "{\"id\":[1],\"prompt\":\"a\"}\n"
        "{\"id\":\"good\",\"prompt\":\"Hi\",\"source\":\"a column of the data set\"}",
        kFailed);
    EXPECT_THAT(rows, SizeIs(14));
    EXPECT_TRUE(rows.at("0").contains("output_ids"));
    EXPECT_TRUE(rows.at("\"good\"").contains("output_ids"));
    const auto param = [&](const std::string& id) {
        return json::serialize(rows.at(id).at("error").at("param"));
    };
    EXPECT_EQ(param("1"), "null");
    EXPECT_EQ(param("\"slip\""), "\"sampling_parms\"");
    EXPECT_EQ(param("\"outside\""), "\"temperature\"");
    EXPECT_EQ(param("\"unknown\""), "\"sampling_params.temprature\"");
    EXPECT_EQ(param("\"type\""), "\"messages[0].content\"");
    EXPECT_EQ(param("\"token\""), "\"input_ids[1]\"");
    EXPECT_EQ(param("\"empty\""), "\"input_ids\"");
    EXPECT_EQ(param("\"schema\""), "\"sampling_params.regex\"");
    EXPECT_EQ(param("\"tools\""), "\"tools\"");
    EXPECT_EQ(param("12"), "\"id\"");
}

TEST(RunBatchTest, AStopStringEndsTheAnswerBeforeIt) {
    const auto rows = rows_of(
        "{\"id\":\"a\",\"prompt\":\"What is the capital of France?\","
        "\"sampling_params\":{\"stop\":[\" of Fr\"],\"max_tokens\":20}}\n",
        kDone);
    EXPECT_EQ(rows.at("\"a\"").at("text"), json::value("The capital"));
    EXPECT_EQ(rows.at("\"a\"").at("finish_reason"), json::value("stop"));
}

TEST(RunBatchTest, AnIdThatComesTwiceIsAnsweredOnce) {
    const TemporaryFile input("{\"id\":1,\"prompt\":\"a\"}\n{\"prompt\":\"b\"}\n");
    const TemporaryFile output("");
    for (int run = 0; run < 2; ++run) {
        const Outcome outcome = run_sluice(
            {"run", "--input", input.path(), "--output", output.path(), "--max-tokens", "2"});
        EXPECT_EQ(outcome.code, kFailed);
        EXPECT_THAT(outcome.err, HasSubstr("used before"));
        EXPECT_THAT(lines_of(output.path()), SizeIs(1));
    }
}

TEST(RunBatchTest, AFileThatIsNotOursIsLeftAlone) {
    const TemporaryFile input("{\"prompt\":\"a\"}\n");
    for (const std::string content : {"notes", "{\"a\":1}\n", "{\"id\":1}\n{\"id\"", "\n"}) {
        const TemporaryFile output(content);
        const Outcome outcome =
            run_sluice({"run", "--input", input.path(), "--output", output.path()});
        EXPECT_EQ(outcome.code, kCannotStart) << content;
        EXPECT_THAT(outcome.err, HasSubstr(output.path() + ": line 1: "));
        std::ostringstream after;
        after << std::ifstream(output.path()).rdbuf();
        EXPECT_EQ(after.str(), content);
    }
    EXPECT_EQ(run_sluice({"run", "--input", input.path(), "--output", input.path()}).code,
              kWrongUse);
}

}  // namespace
}  // namespace sluice::app
