// `sluice sim` and the tool that regenerates docs/simulator.md, on a small trace of our own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/command.h"
#include "tests/app/run_sluice.h"
#include "tests/app/temporary_folder.h"
#include "tests/places.h"

namespace sluice::app {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

const std::string& traces() {
    static const std::string kTraces = std::string(kSourceDir) + "/tests/sim/traces";
    return kTraces;
}

std::string trace() { return traces() + "/conversation_trace.jsonl"; }

std::string content(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

TEST(SimCommandTest, TheSameSeedGivesTheSameBytesEverywhere) {
    const TemporaryFile faults(R"(
        [[fault]]
        at = "30s"
        kind = "crash"
        worker = "any"
        for = "20s"
    )");
    const auto run = [&](const std::string& folder, const std::string& seed) {
        const Outcome outcome =
            run_sluice({"sim", "--trace", trace(), "--workers", "3", "--policy",
                        "default,round_robin", "--faults", faults.path(), "--seed", seed, "--speed",
                        "4", "--image-share", "0.2", "--out", folder});
        EXPECT_EQ(outcome.code, kDone) << outcome.err;
        std::string bytes = outcome.out;
        for (const char* name :
             {"report.txt", "report.jsonl", "index.html", "ttft.svg", "throughput.svg"}) {
            const std::string file = content(fs::path(folder) / name);
            EXPECT_FALSE(file.empty()) << name;
            bytes += file;
        }
        return bytes;
    };
    const TemporaryFolder first;
    const TemporaryFolder second;
    const TemporaryFolder other;
    EXPECT_EQ(run(first.path(), "1"), run(second.path(), "1"));
    EXPECT_NE(run(first.path(), "1"), run(other.path(), "2"));
}

TEST(SimCommandTest, JsonHasTheKeysThatChecksRead) {
    const Outcome outcome = run_sluice({"sim", "--trace", trace(), "--json"});
    EXPECT_EQ(outcome.code, kDone) << outcome.err;
    for (const char* key :
         {"trace", "workers", "policy", "seed", "requests", "completed", "rejected", "hit_share",
          "imbalance", "ttft_ms", "tbt_ms", "goodput_rps", "by_tier"})
        EXPECT_THAT(outcome.out, HasSubstr("\"" + std::string(key) + "\":"));
    EXPECT_THAT(outcome.out, HasSubstr(R"("requests":240,"completed":240,"rejected":0)"));
    EXPECT_THAT(outcome.out, HasSubstr(R"("left_over":0)"));
}

TEST(SimCommandTest, SplitRolesAndMixesRunToo) {
    const Outcome outcome = run_sluice(
        {"sim", "--mix", "chat", "--requests", "200", "--prefill", "2", "--decode", "3", "--json"});
    EXPECT_EQ(outcome.code, kDone) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(R"("workers":5)"));
    EXPECT_THAT(outcome.out, HasSubstr(R"("completed":200)"));
}

TEST(SimCommandTest, WrongUseIsToldWithItsPlace) {
    const auto told = [](const std::vector<std::string>& arguments, int code) {
        const Outcome outcome = run_sluice(arguments);
        EXPECT_EQ(outcome.code, code) << outcome.err;
        EXPECT_EQ(outcome.out, "");
        return outcome.err;
    };
    EXPECT_THAT(told({"sim"}, kWrongUse), HasSubstr("--trace"));
    EXPECT_THAT(told({"sim", "--trace", "/nowhere"}, kCannotStart), HasSubstr("/nowhere"));
    EXPECT_THAT(told({"sim", "--trace", trace(), "--engine", "/nowhere"}, kCannotStart),
                HasSubstr("/nowhere"));
    EXPECT_THAT(told({"sim", "--trace", trace(), "--slice", "300:"}, kWrongUse), HasSubstr("300"));
    EXPECT_THAT(told({"sim", "--mix", "nonsense"}, kWrongUse), HasSubstr("nonsense"));
    EXPECT_THAT(told({"sim", "--mix", "chat", "--slo-ttft", "soon"}, kWrongUse),
                HasSubstr("--slo-ttft"));
    EXPECT_THAT(told({"sim", "--mix", "chat", "--prefill", "2"}, kWrongUse), HasSubstr("--decode"));
    EXPECT_THAT(told({"sim", "--mix", "chat", "--policy", "best"}, kWrongUse), HasSubstr("best"));
    EXPECT_THAT(told({"sim", "--mix", "chat", "--workers", "1000000"}, kWrongUse),
                HasSubstr("--workers"));
    const TemporaryFile rows(
        "{\"timestamp\":0,\"input_length\":5,\"output_length\":5}\nnonsense\n");
    EXPECT_THAT(told({"sim", "--trace", rows.path()}, kWrongUse), HasSubstr(rows.path() + ":2"));
    const TemporaryFile faults(
        "[[fault]]\nat = \"1s\"\nkind = \"crash\"\nworker = 9\nfor = \"1s\"\n");
    EXPECT_THAT(told({"sim", "--mix", "chat", "--faults", faults.path()}, kWrongUse),
                HasSubstr(faults.path() + ":4"));
    const TemporaryFile engine("blocks = 0\n");
    EXPECT_THAT(told({"sim", "--mix", "chat", "--engine", engine.path()}, kWrongUse),
                HasSubstr(engine.path() + ":1"));
}

TEST(SimCommandTest, ATraceThatFitsNoWorkerEndsWithRejections) {
    const Outcome outcome =
        run_sluice({"sim", "--trace", trace(), "--blocks", "2", "--requests", "20", "--json"});
    EXPECT_EQ(outcome.code, kDone) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(R"("left_over":0)"));
    EXPECT_THAT(outcome.out, HasSubstr(R"("completed":0,"rejected":20,)"));
}

TEST(SimCommandTest, OneCommandRegeneratesThePage) {
    const TemporaryFolder docs;
    fs::copy_file(fs::path(kSourceDir) / "docs/simulator.md",
                  fs::path(docs.path()) / "simulator.md");
    const std::string command = std::string("python3 ") + kSourceDir + "/tools/simulate.py " +
                                traces() + " --quick --sluice " + kBinaryDir + "/sluice --docs " +
                                docs.path() + " 2>/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0);
    const std::string page = content(fs::path(docs.path()) / "simulator.md");
    EXPECT_THAT(page, HasSubstr("| round_robin | "));
    EXPECT_THAT(page, HasSubstr("Round robin meets its SLO"));
    EXPECT_THAT(page, Not(HasSubstr("None")));
    EXPECT_TRUE(fs::exists(fs::path(docs.path()) / "simulator/ttft.svg"));
}

}  // namespace
}  // namespace sluice::app
