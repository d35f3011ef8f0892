#include "port/kv_status.h"

#include <gtest/gtest.h>

namespace sluice::port {
namespace {

const KvStatus kStatus{
    .epoch = 3,
    .tiers = {{.tier = "ssd",
               .bytes = 10,
               .limit_bytes = 20,
               .entries = 2,
               .hits = 5,
               .misses = 4,
               .corrupt = 1,
               .evictions = {{"full", 7}},
               .counters = {{"written_bytes", 99}},
               .holdings = {{.tenant = "a", .retention = "chat", .bytes = 10, .entries = 2}}}},
    .stores =
        {{.url = "redis://h:1", .kind = "redis", .reachable = true, .counters = {{"hits", 1}}}},
    .pinned = 6};

TEST(KvStatusTest, WhatIsWrittenReadsBackAsTheSame) {
    EXPECT_EQ(parse_kv_status(to_json(kStatus)), kStatus);
    EXPECT_EQ(parse_kv_status(to_json(KvStatus{})), KvStatus{});
    EXPECT_EQ(parse_kv_status("{}"), KvStatus{});
}

TEST(KvStatusTest, NamesOnTheWireAreThoseOfTheContract) {
    EXPECT_EQ(
        to_json(kStatus),
        R"({"epoch":3,"tiers":[{"tier":"ssd","bytes":10,"limit_bytes":20,"entries":2,"hits":5,)"
        R"("misses":4,"corrupt":1,"evictions":{"full":7},"counters":{"written_bytes":99},)"
        R"("holdings":[{"tenant":"a","class":"chat","bytes":10,"entries":2}]}],)"
        R"("stores":[{"url":"redis://h:1","kind":"redis","reachable":true,)"
        R"("counters":{"hits":1}}],"pinned":6})");
}

TEST(KvStatusTest, AWrongFieldIsNamedWithItsPlace) {
    const auto place = [](std::string_view json) {
        const auto parsed = parse_kv_status(json);
        return parsed ? "none" : parsed.error().place();
    };
    EXPECT_EQ(place(R"({"tiers":[{"bytes":-1}]})"), "tiers[0].bytes");
    EXPECT_EQ(place(R"({"tiers":[1]})"), "tiers[0]");
    EXPECT_EQ(place(R"({"tiers":[{"evictions":{"full":"x"}}]})"), "tiers[0].evictions.full");
    EXPECT_EQ(place(R"({"stores":[{"reachable":1}]})"), "stores[0].reachable");
    EXPECT_EQ(place("[]"), "");
}

}  // namespace
}  // namespace sluice::port
