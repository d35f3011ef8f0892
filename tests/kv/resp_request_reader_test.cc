#include "kv/resp_request_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace sluice::kv {
namespace {

using Status = RespRequestReader::Status;
using Words = std::vector<std::string>;

Words words_of(std::vector<RespText> arguments) {
    Words words;
    for (const RespText& argument : arguments) words.emplace_back(argument.view());
    return words;
}

/// All requests in `stream`, which comes in pieces of `piece` bytes; an error is the last "request".
std::vector<Words> read_all(std::string_view stream, std::size_t piece,
                            const RespBounds& bounds = {}) {
    RespRequestReader reader(bounds);
    std::vector<Words> requests;
    while (!stream.empty()) {
        std::string_view data = stream.substr(0, piece);
        stream.remove_prefix(data.size());
        for (;;) {
            const Status status = reader.read(data);
            if (status == Status::kMore) break;
            if (status == Status::kError) {
                requests.push_back({"error", reader.error().message()});
                return requests;
            }
            requests.push_back(words_of(reader.take()));
        }
    }
    return requests;
}

std::string error_of(std::string_view stream, const RespBounds& bounds = {}) {
    const auto requests = read_all(stream, stream.size(), bounds);
    if (requests.size() != 1 || requests[0][0] != "error") return "no error";
    return requests[0][1];
}

TEST(RespRequestReaderTest, PiecesMakeNoDifference) {
    const std::string large(100'000, 'v');
    const std::string stream =
        "*2\r\n$3\r\nGET\r\n$5\r\na\r\nbc\r\n*1\r\n$4\r\nPING\r\nPING\r\n\r\n" +
        std::string("*3\r\n$3\r\nSET\r\n$0\r\n\r\n$100000\r\n") + large +
        "\r\n*0\r\n*-1\r\n set \"a b\" 'c'\n";
    const std::vector<Words> expected = {
        {"GET", "a\r\nbc"}, {"PING"}, {"PING"}, {"SET", "", large}, {"set", "a b", "c"}};
    for (const std::size_t piece :
         {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{4'096}, stream.size()})
        EXPECT_EQ(read_all(stream, piece), expected) << piece;
}

TEST(RespRequestReaderTest, ALargeValueIsReadToWhereItStays) {
    RespRequestReader reader;
    const std::string value(1'000'000, 'x');
    std::string_view head = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n";
    EXPECT_EQ(reader.read(head), Status::kMore);
    ASSERT_EQ(reader.room().size(), value.size());
    const char* const place = reader.room().data();
    for (std::size_t at = 0; at < value.size(); at += 50'000) {
        const std::span<char> room = reader.room();
        std::memcpy(room.data(), value.data() + at, 50'000);
        std::string_view data(room.data(), 50'000);
        EXPECT_EQ(reader.read(data), Status::kMore);
        EXPECT_TRUE(data.empty());
    }
    EXPECT_TRUE(reader.room().empty());
    std::string_view end = "\r\n";
    ASSERT_EQ(reader.read(end), Status::kRequest);
    const SharedBytes stored = reader.take().at(2).take_shared();
    EXPECT_EQ(stored.bytes, value);
    EXPECT_EQ(stored.bytes.data(), place);
}

TEST(RespRequestReaderTest, WordsOfALineMayBeQuoted) {
    const auto inline_words = [](std::string_view line) {
        return read_all(line, line.size()).at(0);
    };
    EXPECT_EQ(inline_words("a \"b\\x41\\n\\q\\\"c\" 'it\\'s' d\r\n"),
              (Words{"a", "bA\nq\"c", "it's", "d"}));
    EXPECT_EQ(inline_words("a\"b c\"\n"), (Words{"ab c"}));
    EXPECT_EQ(inline_words("\"\"\n"), (Words{""}));
    for (const std::string_view bad : {"a \"b\n", "a 'b\n", "\"a\"b\n", "\"a\\\n"})
        EXPECT_EQ(error_of(bad), "unbalanced quotes in request") << bad;
}

TEST(RespRequestReaderTest, WhatIsNoRequestIsRefused) {
    EXPECT_EQ(error_of("*x\r\n"), "invalid multibulk length");
    EXPECT_EQ(error_of("*1048577\r\n"), "invalid multibulk length");
    EXPECT_EQ(error_of("*99999999999999999999\r\n"), "invalid multibulk length");
    EXPECT_EQ(error_of("*1\r\n:1\r\n"), "expected '$', got ':'");
    EXPECT_EQ(error_of("*1\r\n$-1\r\n"), "invalid bulk length");
    EXPECT_EQ(error_of("*1\r\n$+-1\r\n"), "invalid bulk length");
    EXPECT_EQ(error_of("*1\r\n$1\r\nabc\r\n"), "an argument is longer than its length");
}

TEST(RespRequestReaderTest, NoBoundIsCrossed) {
    EXPECT_EQ(error_of("*1\r\n$536870913\r\n"), "invalid bulk length");
    EXPECT_EQ(error_of("*2\r\n$40\r\n" + std::string(40, 'x') + "\r\n$40\r\n",
                       {.total_bytes = 2 * sizeof(RespText) + 79}),
              "a request of more than " + std::to_string(2 * sizeof(RespText) + 79) + " bytes");
    EXPECT_EQ(error_of(std::string(65, 'x'), {.line_bytes = 63}), "too big inline request");
    EXPECT_EQ(error_of("*1\r\n$" + std::string(65, '0'), {.line_bytes = 63}),
              "too big bulk count string");
    EXPECT_EQ(error_of("*5\r\n", {.elements = 4}), "invalid multibulk length");
    EXPECT_EQ(error_of("*1\r\n$5\r\n", {.text_bytes = 4}), "invalid bulk length");
}

TEST(RespRequestReaderTest, WhatIsAnnouncedCountsAsHeld) {
    RespRequestReader reader;
    EXPECT_TRUE(reader.idle());
    std::string_view data = "*2\r\n$536870912\r\nx";
    EXPECT_EQ(reader.read(data), Status::kMore);
    EXPECT_FALSE(reader.idle());
    EXPECT_GE(reader.held_bytes(), 536'870'912U);
    RespRequestReader line;
    std::string_view half = "PI";
    EXPECT_EQ(line.read(half), Status::kMore);
    EXPECT_FALSE(line.idle());
    EXPECT_EQ(line.held_bytes(), 2U);
}

}  // namespace
}  // namespace sluice::kv
