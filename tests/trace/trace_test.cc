#include "trace/trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/unique_fd.h"
#include "tests/places.h"

namespace sluice::trace {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

std::string error_of(std::string_view text) {
    const auto trace = parse_trace(text, "t");
    return trace ? "none" : trace.error().to_string();
}

TEST(TraceTest, MooncakeLinesGiveTimesLengthsAndBlocks) {
    const auto trace = parse_trace(
        R"({"timestamp": 1000, "input_length": 700, "output_length": 9, "hash_ids": [4, 7]})"
        "\r\n\n"
        R"({"timestamp": 3500, "input_length": 0, "output_length": 0, "hash_ids": []})",
        "t");
    ASSERT_TRUE(trace) << trace.error().to_string();
    ASSERT_EQ(trace->requests.size(), 2U);
    EXPECT_EQ(trace->requests[0].arrival, microseconds(0));
    EXPECT_EQ(trace->requests[0].input_tokens, 700U);
    EXPECT_EQ(trace->requests[0].output_tokens, 9U);
    EXPECT_EQ(trace->requests[0].blocks, (std::vector<std::uint32_t>{4, 7}));
    EXPECT_EQ(trace->requests[1].arrival, milliseconds(2500));
    EXPECT_EQ(trace->requests[1].input_tokens, 1U) << "what is sent has a token";
    EXPECT_EQ(trace->requests[1].output_tokens, 1U);
}

TEST(TraceTest, AzureRowsGiveTimesToTheMicrosecond) {
    const auto trace = parse_trace(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-30 23:59:59.9799600,4808,10\n"
        "2023-12-01 00:00:01,3180,8\n",
        "t");
    ASSERT_TRUE(trace) << trace.error().to_string();
    ASSERT_EQ(trace->requests.size(), 2U);
    EXPECT_EQ(trace->requests[1].arrival, microseconds(1'020'040));
    EXPECT_EQ(trace->requests[1].input_tokens, 3180U);
    EXPECT_TRUE(trace->requests[1].blocks.empty());
}

TEST(TraceTest, RequestsComeInOrderOfArrival) {
    const auto trace = parse_trace(R"({"timestamp": 9, "input_length": 1, "output_length": 1})"
                                   "\n"
                                   R"({"timestamp": 5, "input_length": 2, "output_length": 1})",
                                   "t");
    ASSERT_TRUE(trace);
    EXPECT_EQ(trace->requests[0].input_tokens, 2U);
    EXPECT_EQ(trace->requests[1].arrival, milliseconds(4));
}

TEST(TraceTest, AMistakeIsNamedWithItsLine) {
    const std::string good = R"({"timestamp": 1, "input_length": 2, "output_length": 1})"
                             "\n";
    EXPECT_EQ(error_of(""), "t: holds no requests");
    EXPECT_EQ(error_of(good + "nonsense"), "t:2: is no JSON object");
    EXPECT_EQ(error_of(good + R"({"timestamp": -1})"),
              "t:2.timestamp: must be a whole number of at least 0");
    EXPECT_EQ(error_of(R"({"timestamp": 1, "input_length": 1.5})"),
              "t:1.input_length: must be a whole number of at least 0");
    EXPECT_EQ(
        error_of(
            R"({"timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": [4294967296]})"),
        "t:1.hash_ids: must be an array of whole numbers below 2^32");
    EXPECT_EQ(error_of(R"({"timestamp": 1, "input_length": 99999999999, "output_length": 1})"),
              "t:1: input_length is 99999999999, but must be below 16777216");
    const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
    EXPECT_EQ(error_of(header), "t: holds no requests");
    EXPECT_EQ(error_of(header + "2023-11-16 18:17:03,1"), "t:2: must have three columns");
    EXPECT_EQ(error_of(header + "2023-02-30 18:17:03,1,1"),
              "t:2.TIMESTAMP: must be a time like 2023-11-16 18:17:03.97996");
    EXPECT_EQ(error_of(header + "2023-02-20 18:17:03,1,x"),
              "t:2.GeneratedTokens: must be a whole number");
}

TEST(TraceTest, AFileBeyondTheLimitIsRefusedUnread) {
    std::string path = testing::TempDir() + "sluice-XXXXXX";
    const UniqueFd file(::mkstemp(path.data()));
    ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(limits::kTraceFileBytes) + 1), 0);
    EXPECT_EQ(read_trace(path).error().code(), ErrorCode::kOutOfRange);
    ::unlink(path.c_str());
}

TEST(TraceTest, AFileThatIsNotThereIsNamed) {
    const auto trace = read_trace("/nowhere/trace.jsonl");
    ASSERT_FALSE(trace);
    EXPECT_EQ(trace.error().code(), ErrorCode::kNotFound);
    EXPECT_EQ(trace.error().place(), "/nowhere/trace.jsonl");
}

}  // namespace
}  // namespace sluice::trace
