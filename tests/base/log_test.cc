#include "base/log.h"

#include <thread>

#include "base/limits.h"

namespace sluice::log {
namespace {

constexpr Options kJson{.format = Format::kJson, .process = "gateway"};
constexpr std::string_view kTime = "2026-01-02T03:04:05.678Z";

TEST(LogTest, ATextLineNamesTimeLevelAndProcess) {
    EXPECT_EQ(format_line({.process = "worker-0"}, Level::kWarn, kTime, "pool is full"),
              "2026-01-02T03:04:05.678Z warn  worker-0: pool is full\n");
}

TEST(LogTest, AJsonLineIsOneObject) {
    EXPECT_EQ(format_line(kJson, Level::kError, kTime, R"(a "b" \c)"),
              R"({"time":"2026-01-02T03:04:05.678Z","level":"error","process":"gateway",)"
              R"("message":"a \"b\" \\c"})"
              "\n");
}

TEST(LogTest, NoInputCanForgeASecondLine) {
    const std::string text = format_line({}, Level::kInfo, kTime, "x\nERROR\r\x1b[31m fake");
    EXPECT_EQ(text.find('\n'), text.size() - 1);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_NE(text.find("x\\nERROR"), std::string::npos);
}

TEST(LogTest, ALineIsBounded) {
    const std::string text(10 * limits::kLogLineBytes, 'a');
    EXPECT_LT(format_line({}, Level::kInfo, kTime, text).size(), limits::kLogLineBytes + 100);
}

TEST(LogTest, TheVariableNamesLevelAndFormat) {
    EXPECT_EQ(parse_options("")->level, Level::kInfo);
    EXPECT_EQ(parse_options("debug")->level, Level::kDebug);
    EXPECT_EQ(parse_options("json")->format, Format::kJson);
    EXPECT_EQ(parse_options("warn,json")->level, Level::kWarn);
}

TEST(LogTest, AnUnknownWordIsAnErrorWithTheNearestOne) {
    const auto options = parse_options("wran");
    ASSERT_FALSE(options);
    EXPECT_NE(options.error().to_string().find("did you mean 'warn'?"), std::string::npos);
}

TEST(LogTest, AnAccessLineIsAnObjectInBothFormatsAndAtEveryLevel) {
    EXPECT_EQ(format_access_line({.process = "gateway"}, kTime, R"({"status":200})"),
              R"({"time":"2026-01-02T03:04:05.678Z","process":"gateway","access":{"status":200}})"
              "\n");
    testing::internal::CaptureStderr();
    configure({.level = Level::kError});
    access(R"({"status":200})");
    configure({.level = Level::kOff});
    access(R"({"status":500})");
    configure({});
    const std::string written = testing::internal::GetCapturedStderr();
    EXPECT_NE(written.find(R"("access":{"status":200}})"), std::string::npos);
    EXPECT_EQ(written.find("500"), std::string::npos);
}

TEST(LogTest, LinesBelowTheLevelAreNotWritten) {
    testing::internal::CaptureStderr();
    configure({.level = Level::kWarn});
    info("not this");
    warn("but {}", "this");
    const std::string written = testing::internal::GetCapturedStderr();
    EXPECT_EQ(written.find("not this"), std::string::npos);
    EXPECT_NE(written.find("warn  sluice: but this\n"), std::string::npos);
    EXPECT_FALSE(enabled(Level::kInfo));
    configure({});
}

TEST(LogTest, ThreadsMayLogWhileTheLoggerIsReplaced) {
    testing::internal::CaptureStderr();
    std::thread writer([] {
        for (int i = 0; i < 200; ++i) info("line {}", i);
    });
    for (int i = 0; i < 20; ++i) configure({.format = i % 2 == 0 ? Format::kJson : Format::kText});
    writer.join();
    configure({});
    EXPECT_NE(testing::internal::GetCapturedStderr().find("line 199"), std::string::npos);
}

}  // namespace
}  // namespace sluice::log
