#include "kv/resp_writer.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::kv {
namespace {

SharedBytes shared(std::string text) {
    auto owner = std::make_shared<const std::string>(std::move(text));
    return {.bytes = *owner, .owner = owner};
}

std::string drained(RespWriter& writer) {
    std::string all;
    writer.drain([&](std::string_view text) { all += text; },
                 [&](SharedBytes bytes) { all += bytes.bytes; });
    return all;
}

std::string all_kinds(int version) {
    RespWriter writer;
    writer.set_version(version);
    writer.status("OK");
    writer.error("ERR two\r\nlines");
    writer.integer(-7);
    writer.text("a\r\nb");
    writer.null();
    writer.null_array();
    writer.boolean(true);
    writer.array(0);
    writer.set(0);
    writer.map(1);
    return drained(writer);
}

TEST(RespWriterTest, SpeaksBothVersions) {
    EXPECT_EQ(
        all_kinds(2),
        "+OK\r\n-ERR two  lines\r\n:-7\r\n$4\r\na\r\nb\r\n$-1\r\n*-1\r\n:1\r\n*0\r\n*0\r\n*2\r\n");
    EXPECT_EQ(
        all_kinds(3),
        "+OK\r\n-ERR two  lines\r\n:-7\r\n$4\r\na\r\nb\r\n_\r\n_\r\n#t\r\n*0\r\n~0\r\n%1\r\n");
}

TEST(RespWriterTest, CommandsAreArraysOfStrings) {
    RespWriter writer;
    writer.command({"GET", "k"});
    EXPECT_EQ(writer.bytes(), 20U);
    EXPECT_EQ(drained(writer), "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
    EXPECT_TRUE(writer.empty());
}

TEST(RespWriterTest, LargeValuesLeaveAsTheyAre) {
    const SharedBytes large = shared(std::string(5'000, 'x'));
    const SharedBytes small = shared("small");
    RespWriter writer;
    writer.array(4);
    writer.text(large);
    writer.text(small);
    writer.text(large);
    writer.text(std::string_view("end"));
    std::string order;
    std::string all;
    writer.drain(
        [&](std::string_view text) {
            order += 't';
            all += text;
        },
        [&](const SharedBytes& bytes) {
            order += 's';
            all += bytes.bytes;
            EXPECT_EQ(bytes.bytes.data(), large.bytes.data());
        });
    EXPECT_EQ(order, "tstst");
    const std::string value = "$5000\r\n" + std::string(5'000, 'x') + "\r\n";
    EXPECT_EQ(all, "*4\r\n" + value + "$5\r\nsmall\r\n" + value + "$3\r\nend\r\n");
    EXPECT_TRUE(writer.empty());
    EXPECT_EQ(large.owner.use_count(), 1);
}

}  // namespace
}  // namespace sluice::kv
