#include "kv/resp_reply_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace sluice::kv {
namespace {

using Status = RespReplyReader::Status;

/// A reply in a form that is easy to compare.
std::string shown(const RespReply& reply) {
    const std::string text(reply.text.view());
    switch (reply.type) {
        case RespType::kNull: return "null";
        case RespType::kStatus: return "+" + text;
        case RespType::kError: return "-" + text;
        case RespType::kText: return "'" + text + "'";
        case RespType::kBigNumber: return "(" + text;
        case RespType::kInteger: return std::to_string(reply.integer);
        case RespType::kDouble: return std::to_string(reply.number);
        case RespType::kArray:
        case RespType::kSet:
        case RespType::kMap:
        case RespType::kPush: break;
    }
    std::string list = reply.type == RespType::kArray ? "["
                       : reply.type == RespType::kSet ? "~["
                       : reply.type == RespType::kMap ? "%["
                                                      : ">[";
    for (const RespReply& element : reply.elements) list += shown(element) + " ";
    return list + "]";
}

/// All replies in `stream`, which comes in pieces of `piece` bytes, one after the other.
std::string read_all(std::string_view stream, std::size_t piece, const RespBounds& bounds = {}) {
    RespReplyReader reader(bounds);
    std::string replies;
    while (!stream.empty()) {
        std::string_view data = stream.substr(0, piece);
        stream.remove_prefix(data.size());
        for (;;) {
            const Status status = reader.read(data);
            if (status == Status::kMore) break;
            if (status == Status::kError) return replies + "error: " + reader.error().message();
            replies += shown(reader.take()) + "; ";
        }
    }
    return reader.idle() ? replies : replies + "...";
}

std::string read_whole(std::string_view stream, const RespBounds& bounds = {}) {
    return read_all(stream, stream.size(), bounds);
}

TEST(RespReplyReaderTest, PiecesMakeNoDifference) {
    const std::string stream =
        "+OK\r\n-ERR no\r\n:-12\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n*0\r\n*2\r\n$0\r\n\r\n*1\r\n:1\r\n"
        "_\r\n#t\r\n#f\r\n,1.5\r\n(123456789012345678901\r\n!5\r\nERR x\r\n=5\r\ntxt:y\r\n"
        "%1\r\n+k\r\n:1\r\n~1\r\n:2\r\n>2\r\n+invalidate\r\n_\r\n|1\r\n+a\r\n*1\r\n:3\r\n:4\r\n"
        "*2\r\n|1\r\n+a\r\n:3\r\n:5\r\n:6\r\n";
    const std::string expected =
        "+OK; -ERR no; -12; 'a\r\n'; null; null; []; ['' [1 ] ]; null; 1; 0; 1.500000; "
        "(123456789012345678901; -ERR x; 'txt:y'; %[+k 1 ]; ~[2 ]; >[+invalidate null ]; 4; [5 6 "
        "]; ";
    for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, stream.size()})
        EXPECT_EQ(read_all(stream, piece), expected) << piece;
}

TEST(RespReplyReaderTest, DoublesMayBeInfinite) {
    RespReplyReader reader;
    std::string_view data = ",inf\r\n,-inf\r\n,nan\r\n";
    ASSERT_EQ(reader.read(data), Status::kReply);
    EXPECT_EQ(reader.take().number, HUGE_VAL);
    ASSERT_EQ(reader.read(data), Status::kReply);
    EXPECT_EQ(reader.take().number, -HUGE_VAL);
    ASSERT_EQ(reader.read(data), Status::kReply);
    EXPECT_TRUE(std::isnan(reader.take().number));
}

TEST(RespReplyReaderTest, LargeTextsAreReadToWhereTheyStay) {
    RespReplyReader reader;
    std::string_view head = "*2\r\n$20000\r\n";
    EXPECT_EQ(reader.read(head), Status::kMore);
    const std::span<char> room = reader.room();
    ASSERT_EQ(room.size(), 20'000U);
    std::ranges::fill(room, 'z');
    std::string_view data(room.data(), room.size());
    EXPECT_EQ(reader.read(data), Status::kMore);
    std::string_view rest = "\r\n+OK\r\n";
    ASSERT_EQ(reader.read(rest), Status::kReply);
    RespReply reply = reader.take();
    const SharedBytes bytes = reply.elements.at(0).text.take_shared();
    EXPECT_EQ(bytes.bytes, std::string(20'000, 'z'));
    EXPECT_EQ(bytes.bytes.data(), room.data());
}

TEST(RespReplyReaderTest, WhatIsNoReplyIsAnError) {
    for (const std::string_view bad :
         {"x\r\n", "\r\n", ":1x\r\n", ":\r\n", "$x\r\n", "$-2\r\n", "$?\r\n", "*-2\r\n", "%-1\r\n",
          "#x\r\n", ",x\r\n", "_x\r\n", "$1\r\nab\r\n", "*1\r\n*x\r\n"})
        EXPECT_TRUE(read_whole(bad).starts_with("error: ")) << bad << read_whole(bad);
}

TEST(RespReplyReaderTest, NoBoundIsCrossed) {
    EXPECT_EQ(read_whole("*2\r\n*2\r\n*1\r\n:1\r\n", {.depth = 2}),
              "error: arrays within arrays, too deep");
    EXPECT_EQ(read_whole("*3\r\n:1\r\n:2\r\n:3\r\n", {.elements = 3}), "error: too many elements");
    EXPECT_EQ(read_whole("*5\r\n", {.elements = 3}), "error: an array of invalid length");
    EXPECT_EQ(read_whole("$5\r\n", {.text_bytes = 4}), "error: a string of invalid length");
    EXPECT_EQ(read_whole("$500\r\n", {.total_bytes = 499}), "error: too many bytes");
    EXPECT_EQ(read_whole("+" + std::string(40, 'x'), {.line_bytes = 32}),
              "error: a line is too long");
    // The next reply starts anew.
    EXPECT_EQ(read_whole(":1\r\n:2\r\n:3\r\n", {.elements = 1}), "1; 2; 3; ");
}

}  // namespace
}  // namespace sluice::kv
