// The command line as scripts see it: exit codes, one clear line, JSON.

#include <gmock/gmock.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "app/command.h"
#include "base/limits.h"
#include "tests/app/run_sluice.h"

namespace sluice::app {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

bool is_one_line(const std::string& text) {
    return std::count(text.begin(), text.end(), '\n') == 1 && text.ends_with('\n');
}

TEST(CliTest, HelpNamesEveryCommand) {
    const Outcome help = run_sluice({"--help"});
    EXPECT_EQ(help.code, kDone);
    EXPECT_THAT(help.err, IsEmpty());
    for (const Command& command : commands()) {
        EXPECT_THAT(help.out, HasSubstr(std::string("\n  ") + std::string(command.name) + " "));
    }
}

TEST(CliTest, EveryCommandHasHelp) {
    for (const Command& command : commands()) {
        const Outcome help = run_sluice({std::string(command.name), "--help"});
        EXPECT_EQ(help.code, kDone) << command.name;
        EXPECT_THAT(help.out, HasSubstr("Usage: sluice " + std::string(command.name) + " "));
    }
}

TEST(CliTest, NoCommandIsWrongUseAndPrintsTheHelp) {
    const Outcome outcome = run_sluice({});
    EXPECT_EQ(outcome.code, kWrongUse);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, HasSubstr("Subcommands:"));
}

TEST(CliTest, AnUnknownCommandIsWrongUseWithTheNearestName) {
    const Outcome outcome = run_sluice({"vesion"});
    EXPECT_EQ(outcome.code, kWrongUse);
    EXPECT_EQ(outcome.err, "sluice: unknown command 'vesion'; did you mean 'version'?\n");
    EXPECT_EQ(run_sluice({"config", "chek"}).err,
              "sluice: unknown command 'chek'; did you mean 'check'?\n");
}

TEST(CliTest, AnUnknownOptionIsWrongUseWithTheNearestName) {
    const Outcome outcome = run_sluice({"version", "--jsno"});
    EXPECT_EQ(outcome.code, kWrongUse);
    EXPECT_EQ(outcome.err, "sluice: unknown option '--jsno'; did you mean '--json'?\n");
}

TEST(CliTest, WrongUseIsOneLineThatPointsToTheHelp) {
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--bogus"},
                                                      {"version", "extra"},
                                                      {"config"},
                                                      {"config", "check"},
                                                      {"zzz"},
                                                      {"config", "show", "--file=x"}}) {
        const Outcome outcome = run_sluice(arguments);
        EXPECT_EQ(outcome.code, kWrongUse) << arguments.front();
        EXPECT_TRUE(is_one_line(outcome.err)) << outcome.err;
        EXPECT_THAT(outcome.err, HasSubstr("--help`"));
    }
}

TEST(CliTest, VersionIsTextOrJson) {
    EXPECT_THAT(run_sluice({"version"}).out, StartsWith("sluice "));
    EXPECT_THAT(run_sluice({"--version"}).out, StartsWith("sluice "));
    const auto json = boost::json::parse(run_sluice({"version", "--json"}).out).as_object();
    for (const char* key : {"version", "commit", "compiler", "flags", "arithmetic", "targets"}) {
        EXPECT_TRUE(json.contains(key)) << key;
    }
}

TEST(CliTest, LimitsPrintsTheWholeTable) {
    const Outcome text = run_sluice({"limits"});
    EXPECT_EQ(text.code, kDone);
    const auto json = boost::json::parse(run_sluice({"limits", "--json"}).out).as_array();
    ASSERT_EQ(json.size(), limits::all().size());
    for (std::size_t i = 0; i < json.size(); ++i) {
        EXPECT_EQ(json[i].at("name").as_string(), limits::all()[i].name);
        EXPECT_THAT(text.out, HasSubstr(std::string(limits::all()[i].name) + " "));
    }
}

TEST(CliTest, AGoodConfigurationIsDone) {
    const TemporaryFile file("[[pool]]\nname = \"a\"\n");
    const Outcome outcome = run_sluice({"config", "check", file.path()});
    EXPECT_EQ(outcome.code, kDone);
    EXPECT_EQ(outcome.out, file.path() + ": good\n");
}

TEST(CliTest, EveryMistakeOfAConfigurationIsALineOnStderr) {
    const TemporaryFile file("[gatewy]\n[[pool]]\nworkers = 0\n");
    const Outcome outcome = run_sluice({"config", "check", file.path()});
    EXPECT_EQ(outcome.code, kWrongUse);
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_EQ(outcome.err, "sluice: " + file.path() +
                               ":1: unknown key 'gatewy'; did you mean 'gateway'?\n" +
                               "sluice: " + file.path() +
                               ":3: pool[0].workers is 0, but must be from 1 to 64\n");
    const auto json =
        boost::json::parse(run_sluice({"config", "check", file.path(), "--json"}).out).as_object();
    EXPECT_FALSE(json.at("valid").as_bool());
    EXPECT_EQ(json.at("errors").as_array().size(), 2U);
}

TEST(CliTest, AMissingFileCannotStart) {
    for (const char* verb : {"check", "show"}) {
        const Outcome outcome = run_sluice({"config", verb, "/nowhere/sluice.toml"});
        EXPECT_EQ(outcome.code, kCannotStart);
        EXPECT_EQ(
            outcome.err,
            "sluice: /nowhere/sluice.toml: cannot open the file: No such file or directory\n");
    }
}

TEST(CliTest, WhatConfigShowPrintsIsAGoodConfiguration) {
    const Outcome shown = run_sluice({"config", "show"});
    EXPECT_EQ(shown.code, kDone);
    const TemporaryFile file(shown.out);
    EXPECT_EQ(run_sluice({"config", "check", file.path()}).code, kDone);
    const auto json = boost::json::parse(run_sluice({"config", "show", "--json"}).out).as_array();
    EXPECT_EQ(json.at(0).at("key").as_string(), "listen");
    EXPECT_EQ(json.at(0).at("place").as_string(), "default");
}

TEST(CliTest, AWrongLogVariableIsWrongUse) {
    const Outcome outcome = run_sluice({"limits"}, {"SLUICE_LOG=loud"});
    EXPECT_EQ(outcome.code, kWrongUse);
    EXPECT_THAT(outcome.err, StartsWith("sluice: SLUICE_LOG: 'loud' is not one of"));
}

}  // namespace
}  // namespace sluice::app
