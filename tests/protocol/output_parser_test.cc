#include "protocol/output_parser.h"

#include <gmock/gmock.h>

#include <random>

namespace sluice::protocol {
namespace {

struct Answer {
    std::string reasoning;
    std::string content;
    std::optional<std::string> stop;
    bool operator==(const Answer&) const = default;
};

void PrintTo(const Answer& answer, std::ostream* out) {
    *out << "reasoning " << testing::PrintToString(answer.reasoning) << ", content "
         << testing::PrintToString(answer.content) << ", stop "
         << testing::PrintToString(answer.stop.value_or("none"));
}

Answer fold(const ParseOptions& options, const std::vector<std::string_view>& pieces) {
    OutputParser parser(options);
    Answer answer;
    std::uint64_t end = 0;
    const auto add = [&](const std::vector<OutputEvent>& events) {
        for (const OutputEvent& event : events) {
            EXPECT_FALSE(event.text.empty());
            EXPECT_GE(event.begin, end);
            EXPECT_EQ(event.end - event.begin, event.text.size());
            end = event.end;
            (event.kind == OutputKind::kReasoning ? answer.reasoning : answer.content) +=
                event.text;
        }
    };
    for (const std::string_view piece : pieces) add(parser.push(piece));
    add(parser.finish());
    EXPECT_TRUE(parser.finish().empty());
    EXPECT_TRUE(parser.push("more").empty());
    answer.stop = parser.matched_stop();
    return answer;
}

Answer parse(std::string_view text, OutputStart start, std::vector<std::string> stop = {}) {
    return fold({.start = start, .stop = std::move(stop)}, {text});
}

using enum OutputStart;

TEST(OutputParserTest, PlainTextIsContent) {
    EXPECT_EQ(parse("hello", kContent), (Answer{"", "hello", {}}));
    EXPECT_EQ(parse("", kContent), Answer{});
}

TEST(OutputParserTest, ThinkEndPartsThinkingFromAnswerAndEatsNewlinesAround) {
    EXPECT_EQ(parse("\n\nr\n\n</think>\n\n\na\n\n", kReasoning), (Answer{"r", "a\n\n", {}}));
    EXPECT_EQ(parse("</think>", kReasoning), Answer{});
    EXPECT_EQ(parse("r\n\n\n</thinkx</think>y", kReasoning), (Answer{"r\n\n\n</thinkx", "y", {}}));
}

TEST(OutputParserTest, ThinkingThatNeverEndsIsAllThinking) {
    EXPECT_EQ(parse("r\n\n", kReasoning), (Answer{"r\n\n", "", {}}));
    EXPECT_EQ(parse("r</thin", kReasoning), (Answer{"r</thin", "", {}}));
}

TEST(OutputParserTest, AStrayThinkEndIsDropped) {
    EXPECT_EQ(parse("a</think>b", kContent), (Answer{"", "ab", {}}));
    EXPECT_EQ(parse("</think>\n\na", kContent), (Answer{"", "a", {}}));
}

TEST(OutputParserTest, ALeadingThinkBeginOpensThinking) {
    EXPECT_EQ(parse("<think>\nr</think>a", kReasoning), (Answer{"r", "a", {}}));
    EXPECT_EQ(parse("\n<think>r</think>a", kContent), (Answer{"r", "a", {}}));
    EXPECT_EQ(parse("<｜begin▁of▁sentence｜><think>r</think>a", kContent), (Answer{"r", "a", {}}));
}

TEST(OutputParserTest, ALaterThinkBeginIsText) {
    EXPECT_EQ(parse("r</think>a<think>b</think>c", kReasoning), (Answer{"r", "a<think>bc", {}}));
    EXPECT_EQ(parse("a<think>", kContent), (Answer{"", "a<think>", {}}));
    EXPECT_EQ(parse("<think>", kContentContinuation), (Answer{"", "<think>", {}}));
}

TEST(OutputParserTest, AContinuationKeepsItsFirstNewlines) {
    EXPECT_EQ(parse("\na", kContentContinuation), (Answer{"", "\na", {}}));
    EXPECT_EQ(parse("\nr</think>\na", kReasoningContinuation), (Answer{"\nr", "a", {}}));
}

TEST(OutputParserTest, SentenceMarksAreDroppedWhole) {
    EXPECT_EQ(parse("a<｜end▁of▁sentence｜>b<｜begin▁of▁sentence｜>", kContent),
              (Answer{"", "ab", {}}));
    EXPECT_EQ(parse("r<｜end▁of▁sentence｜>\n</think>a", kReasoning), (Answer{"r", "a", {}}));
    EXPECT_EQ(parse("a<｜end▁of▁", kContent), (Answer{"", "a<｜end▁of▁", {}}));
}

TEST(OutputParserTest, AStopStringEndsTheAnswerBeforeIt) {
    EXPECT_EQ(parse("hello STOP world", kContent, {"STOP"}), (Answer{"", "hello ", "STOP"}));
    EXPECT_EQ(parse("STOPx", kContent, {"STOP"}), (Answer{"", "", "STOP"}));
    EXPECT_EQ(parse("hello STO", kContent, {"STOP"}), (Answer{"", "hello STO", {}}));
    EXPECT_EQ(parse("a停止b", kContent, {"停止"}), (Answer{"", "a", "停止"}));
    EXPECT_EQ(parse("\n\na\n\nb", kContent, {"\n\n"}), (Answer{"", "a", "\n\n"}));
}

TEST(OutputParserTest, TheStopStringCompleteFirstWins) {
    EXPECT_EQ(parse("xababac", kContent, {"abac", "bab"}), (Answer{"", "xa", "bab"}));
    EXPECT_EQ(parse("abcd", kContent, {"bcd", "b"}), (Answer{"", "a", "b"}));
    EXPECT_EQ(parse("xabc", kContent, {"ab", "abc"}), (Answer{"", "x", "ab"}));
    EXPECT_EQ(parse("xabc", kContent, {"c", "bc"}), (Answer{"", "xa", "bc"}));
}

TEST(OutputParserTest, StopStringsDoNotLookAtThinkingOrAcrossItsEnd) {
    EXPECT_EQ(parse("x STOP y</think>a STOP b", kReasoning, {"STOP"}),
              (Answer{"x STOP y", "a ", "STOP"}));
    EXPECT_EQ(parse("ST</think>OP a", kReasoning, {"STOP"}), (Answer{"ST", "OP a", {}}));
}

TEST(OutputParserTest, AStopStringMayBeAMark) {
    EXPECT_EQ(parse("a</think>b", kContent, {"</think>"}), (Answer{"", "a", "</think>"}));
    EXPECT_EQ(parse("a</think>b", kContent, {">"}), (Answer{"", "ab", {}}));
}

TEST(OutputParserTest, WithoutMarkupOnlyStopStringsCount) {
    const ParseOptions options{.stop = {"END"}, .markup = Markup::kNone};
    EXPECT_EQ(fold(options, {"\n<think>a</think>", "EN", "Db"}),
              (Answer{"", "\n<think>a</think>", "END"}));
}

TEST(OutputParserTest, TextIsGivenAtOnceUnlessAMarkMayHaveBegun) {
    OutputParser parser({.start = kContent, .stop = {"STOP"}});
    EXPECT_THAT(parser.push("hello S"), testing::SizeIs(1));
    EXPECT_EQ(parser.held_bytes(), 1u);
    const auto events = parser.push("o");
    ASSERT_THAT(events, testing::SizeIs(1));
    EXPECT_EQ(events[0].text, "So");
    EXPECT_EQ(events[0].begin, 6u);
    EXPECT_EQ(parser.held_bytes(), 0u);
}

TEST(OutputParserTest, NeverMoreThanTheLongestPartialMarkIsHeld) {
    const std::string stop(1000, 'a');
    OutputParser parser({.start = kContent, .stop = {stop + "b"}});
    for (int i = 0; i < 20'000; ++i) {
        (void)parser.push("a");
        ASSERT_LE(parser.held_bytes(), 1000u);
    }
    EXPECT_EQ(parser.held_bytes(), 1000u);
}

TEST(OutputParserTest, CountsTokensOfThinkingUntilItEnds) {
    OutputParser parser({.start = kReasoning});
    EXPECT_TRUE(parser.in_reasoning());
    (void)parser.push("r</think>");
    EXPECT_FALSE(parser.in_reasoning());
}

// Near-misses of every mark and of stop strings that overlap them and themselves.
const std::vector<std::string> kPieces = {"</think>",
                                          "<think>",
                                          "</thin",
                                          "<",
                                          "\n",
                                          "\n\n",
                                          "a",
                                          "é",
                                          "停",
                                          "止",
                                          "<｜end▁of▁sentence｜>",
                                          "<｜begin▁of▁sentence｜>",
                                          "<｜end▁of▁",
                                          "｜",
                                          "ab",
                                          "aba",
                                          "STOP",
                                          "ST",
                                          "OP",
                                          "</",
                                          "think>"};
const std::vector<std::string> kStops = {"STOP", "abab",     "aba", "\n\n",
                                         "停止", "</think>", "a</", ">"};

TEST(OutputParserTest, EveryChunkingGivesTheSame) {
    std::mt19937 random(7);
    for (int round = 0; round < 4'000; ++round) {
        ParseOptions options;
        options.start = static_cast<OutputStart>(random() % 4);
        for (const std::string& stop : kStops) {
            if (random() % 5 == 0) options.stop.push_back(stop);
        }
        std::string text;
        for (std::size_t i = random() % 16; i > 0; --i) text += kPieces[random() % kPieces.size()];
        const Answer whole = fold(options, {text});
        std::vector<std::string_view> bytes;
        for (std::size_t i = 0; i < text.size(); ++i)
            bytes.push_back(std::string_view(text).substr(i, 1));
        ASSERT_EQ(fold(options, bytes), whole) << text;
        std::vector<std::string_view> pieces;
        for (std::string_view rest = text; !rest.empty();) {
            const std::size_t size = std::min<std::size_t>(1 + random() % 7, rest.size());
            pieces.push_back(rest.substr(0, size));
            rest.remove_prefix(size);
        }
        ASSERT_EQ(fold(options, pieces), whole) << text;
    }
}

// Work is bounded by the input, not by its square: two megabytes of the worst would take hours.
TEST(OutputParserTest, AdversarialInputTakesLinearWork) {
    std::vector<std::string> stop;
    for (int i = 0; i < 16; ++i) {
        stop.emplace_back(1023, 'a');
        stop.back() += static_cast<char>('b' + i);
    }
    OutputParser parser({.start = kContent, .stop = stop});
    std::string text;
    while (text.size() < 1'000'000) text += "</thin</thin";
    text += std::string(1'000'000, 'a');
    std::size_t given = 0;
    for (const OutputEvent& event : parser.push(text)) given += event.text.size();
    for (const OutputEvent& event : parser.finish()) given += event.text.size();
    EXPECT_EQ(given, text.size());
}

}  // namespace
}  // namespace sluice::protocol
