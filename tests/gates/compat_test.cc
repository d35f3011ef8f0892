#include "gates/compat.h"

#include <gtest/gtest.h>

namespace sluice::gates {
namespace {

/// A machine on which DeepInfer runs.
MachineFacts blackwell() {
    MachineFacts facts;
    facts.system = "Linux";
    facts.machine = "x86_64";
    facts.cpu_features = {"avx2", "fma", "f16c"};
    facts.gcc = "13.2.0";
    facts.python = "3.12.4";
    facts.cuda = "13.0";
    facts.accelerators = {{.vendor = "nvidia", .name = "NVIDIA B200", .architecture = "sm_100"}};
    return facts;
}

bool passes(CompatEngine engine, const MachineFacts& facts,
            std::string_view model = "DeepSeek-V4.1-Flash") {
    return GateReport{.gate = "compat", .items = check_machine(engine, facts, model)}.passed();
}

TEST(CompatTest, DeepInferPassesOnWhatItSupports) {
    EXPECT_TRUE(passes(CompatEngine::kDeepInfer, blackwell()));
    MachineFacts ascend = blackwell();
    ascend.cuda.clear();
    ascend.cann = "9.2.0";
    ascend.accelerators = {{.vendor = "ascend", .name = "950PR", .architecture = "950PR"}};
    EXPECT_TRUE(passes(CompatEngine::kDeepInfer, ascend));
    ascend.cann = "9.1.0";
    EXPECT_FALSE(passes(CompatEngine::kDeepInfer, ascend));
}

TEST(CompatTest, DeepInferFailsOnEachMissingPart) {
    const auto without = [](auto change) {
        MachineFacts facts = blackwell();
        change(facts);
        return passes(CompatEngine::kDeepInfer, facts);
    };
    EXPECT_FALSE(without([](MachineFacts& f) { f.system = "Darwin"; }));
    EXPECT_FALSE(without([](MachineFacts& f) { f.gcc = "12.2.0"; }));
    EXPECT_FALSE(without([](MachineFacts& f) { f.gcc.clear(); }));
    EXPECT_FALSE(without([](MachineFacts& f) { f.python = "3.11.2"; }));
    EXPECT_FALSE(without([](MachineFacts& f) { f.python = "3.120"; }));
    EXPECT_FALSE(without([](MachineFacts& f) { f.cuda = "12.9"; }));
    EXPECT_FALSE(without([](MachineFacts& f) { f.accelerators.clear(); }));
    EXPECT_FALSE(without([](MachineFacts& f) { f.accelerators[0].architecture = "sm_90"; }));
    EXPECT_FALSE(passes(CompatEngine::kDeepInfer, blackwell(), "DeepSeek-V4-Flash"));
}

TEST(CompatTest, AModelThatWasNotToldIsUnknown) {
    const auto items = check_machine(CompatEngine::kDeepInfer, blackwell(), "");
    EXPECT_EQ(items.back().verdict, Verdict::kUnknown);
    EXPECT_FALSE(items.back().advice.empty());
}

TEST(CompatTest, TheNativeEngineNeedsFusedMultiplyAdd) {
    EXPECT_TRUE(passes(CompatEngine::kNative, blackwell()));
    MachineFacts old = blackwell();
    old.cpu_features = {"avx"};
    EXPECT_FALSE(passes(CompatEngine::kNative, old));
}

TEST(CompatTest, ServersTellTheirVersionsInTheirOwnWays) {
    EXPECT_EQ(version_of(CompatEngine::kVllm, R"({"version":"0.11.2"})"), "0.11.2");
    EXPECT_EQ(version_of(CompatEngine::kSglang, R"({"tp_size":1,"version":"0.5.6"})"), "0.5.6");
    EXPECT_EQ(version_of(CompatEngine::kLlamaCpp, R"({"build_info":"b7001-abc"})"), "b7001-abc");
    EXPECT_EQ(version_of(CompatEngine::kVllm, "<html>"), "");
    EXPECT_EQ(version_of(CompatEngine::kVllm, R"({"version":7})"), "");
}

TEST(CompatTest, AServerIsJudgedByWhatItServes) {
    const auto verdict = [](const ServerFacts& server, std::string_view model) {
        return GateReport{.gate = "compat",
                          .items = check_server(CompatEngine::kVllm, server, model)}
            .passed();
    };
    const ServerFacts good{.url = "http://h", .version = "0.11", .models = {"a", "b"}};
    EXPECT_TRUE(verdict(good, ""));
    EXPECT_TRUE(verdict(good, "b"));
    EXPECT_FALSE(verdict(good, "c"));
    EXPECT_FALSE(verdict({.url = "http://h", .version = "1", .models = {}}, ""));
    EXPECT_FALSE(verdict({.url = "http://h", .version = {}, .models = {}, .error = "refused"}, ""));
    const auto silent = check_server(CompatEngine::kVllm, {.url = "http://h", .models = {"a"}}, "");
    EXPECT_EQ(silent[1].verdict, Verdict::kUnknown);
}

TEST(CompatTest, EveryEngineHasAName) {
    for (const char* name : {"native", "deepinfer", "vllm", "sglang", "llama.cpp"}) {
        const auto engine = parse_compat_engine(name);
        ASSERT_TRUE(engine) << name;
        EXPECT_EQ(to_string(*engine), name);
    }
    EXPECT_FALSE(parse_compat_engine("triton"));
}

TEST(GateReportTest, OneFailureFailsTheGate) {
    GateReport report{.gate = "compat",
                      .items = {{.subject = "a",
                                 .item = "b\nc",
                                 .required = "d",
                                 .found = "e",
                                 .verdict = Verdict::kUnknown}}};
    EXPECT_TRUE(report.passed());
    EXPECT_NE(to_text(report).find("gate compat: passed (0 pass, 0 fail, 1 unknown)"),
              std::string::npos);
    EXPECT_EQ(to_text(report).find("b\nc"), std::string::npos)
        << "text from outside keeps its line";
    report.items.push_back({.verdict = Verdict::kFail, .advice = "do it"});
    EXPECT_FALSE(report.passed());
    EXPECT_NE(to_json(report).find(R"("passed":false)"), std::string::npos);
    EXPECT_NE(to_json(report).find(R"("advice":"do it")"), std::string::npos);
}

}  // namespace
}  // namespace sluice::gates
