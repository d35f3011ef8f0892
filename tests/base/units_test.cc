#include "base/units.h"

#include <array>

#include "base/nearest.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;

TEST(UnitsTest, DurationsAreSumsOfUnits) {
    EXPECT_EQ(parse_duration("10m"), milliseconds(600'000));
    EXPECT_EQ(parse_duration("1h30m"), milliseconds(5'400'000));
    EXPECT_EQ(parse_duration("1d2h3m4s5ms"), milliseconds(93'784'005));
    EXPECT_EQ(parse_duration("0s"), milliseconds(0));
}

TEST(UnitsTest, DurationsWithoutAUnitOrInTheWrongOrderAreRefused) {
    for (const char* text : {"", "10", "m", "1m1h", "1m1m", "-1s", "1.5h", "1 h", "1x", " 1s",
                             "1s ", "99999999999999999999s", "9223372036854775807d"}) {
        EXPECT_FALSE(parse_duration(text)) << text;
    }
}

TEST(UnitsTest, ADurationIsPrintedAsItIsRead) {
    for (const char* text : {"0s", "250ms", "10m", "1h30m", "7d", "1d2h3m4s5ms"}) {
        EXPECT_EQ(format_duration(*parse_duration(text)), text);
    }
}

TEST(UnitsTest, SizesKnowBinaryAndDecimalUnits) {
    EXPECT_EQ(parse_bytes("4GiB"), 4ULL << 30);
    EXPECT_EQ(parse_bytes("100 MB"), 100'000'000ULL);
    EXPECT_EQ(parse_bytes("7B"), 7ULL);
    for (const char* text : {"", "4", "4G", "GiB", "-1B", "1.5GiB", "9999999999TiB", "4gib"}) {
        EXPECT_FALSE(parse_bytes(text)) << text;
    }
}

TEST(UnitsTest, ASizeIsPrintedInTheLargestUnitThatDividesIt) {
    EXPECT_EQ(format_bytes(4ULL << 30), "4GiB");
    EXPECT_EQ(format_bytes(1536), "1536B");
    EXPECT_EQ(format_bytes(3ULL << 20), "3MiB");
    EXPECT_EQ(format_bytes(0), "0B");
}

TEST(UnitsTest, AddressesSplitAtTheLastColon) {
    EXPECT_EQ(parse_host_port("127.0.0.1:8080"), (HostPort{"127.0.0.1", 8080}));
    EXPECT_EQ(parse_host_port("[::1]:0"), (HostPort{"::1", 0}));
    EXPECT_EQ(to_string(*parse_host_port("[::1]:80")), "[::1]:80");
    for (const char* text : {"", ":", ":80", "host", "host:", "host:99999", "host:8x", "::1:80",
                             "http://host:80", "a b:80"}) {
        EXPECT_FALSE(parse_host_port(text)) << text;
    }
}

TEST(NearestTest, ASlipOfTheFingersFindsItsName) {
    constexpr auto kNames = std::to_array<std::string_view>({"workers", "threads", "listen"});
    EXPECT_EQ(nearest_name("worker", kNames), "workers");
    EXPECT_EQ(nearest_name("therads", kNames), "threads");
    EXPECT_EQ(nearest_name("lisen", kNames), "listen");
    EXPECT_EQ(nearest_name("colour", kNames), "");
    EXPECT_EQ(nearest_name("", kNames), "");
    EXPECT_EQ(did_you_mean("worker", kNames), "; did you mean 'workers'?");
}

TEST(NearestTest, DistanceCountsSwapsOnce) {
    EXPECT_EQ(edit_distance("ab", "ba"), 1U);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
    EXPECT_EQ(edit_distance("", "abc"), 3U);
    EXPECT_EQ(edit_distance(std::string(1000, 'a'), std::string(1000, 'b')), 64U);
}

}  // namespace
}  // namespace sluice
