#include "record/request_row.h"

#include "tests/record/support.h"

namespace sluice::record {
namespace {

TEST(RequestRowTest, ComesBackEqual) {
    const RequestRow row = example_row();
    const auto back = parse_row(to_json(row, 0.25));
    ASSERT_TRUE(back.has_value()) << back.error().to_string();
    EXPECT_EQ(back->row, row);
    EXPECT_EQ(back->cost, 0.25);
}

TEST(RequestRowTest, ARowOfNothingComesBackToo) {
    const auto back = parse_row(to_json(RequestRow{}));
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->row, RequestRow{});
    EXPECT_EQ(back->cost, std::nullopt);
}

// These names are what users query (design: records).
TEST(RequestRowTest, ItsKeysAreTheOnesThatUsersKnow) {
    EXPECT_EQ(
        to_json(example_row(), 0.5),
        R"({"rid":"r1","request_id":"named r1","time":1800000000123,"tenant":"acme","pool":"stable","role":"answer",)"
        R"("bucket":"16k-64k","kind":"seeded","prompt_tokens":20000,"cached_tokens":19968,)"
        R"("cached_by_source":{"dram":64,"pool":19904},"kv_decision":{"loads":[{"source":"dram",)"
        R"("choice":"load","tokens":64,"predicted_us":1,"compute_us":2,"queue_us":3,"took_us":4}],)"
        R"("compute_predicted_us":5,"compute_took_us":6},"completion_tokens":3,"ttft_ms":12.345,)"
        R"("tbt_ms":{"p50":10.078,"p99":20,"max":20},"tbt_sketch":[[466,1],[501,1]],)"
        R"("duration_ms":45.678,"outcome":"ok","resumes":1,"retries":2,"recomputed_tokens":64,)"
        R"("recompute_cause":"loss","schema_digest":"ab12","device_memory_bytes":141000000000,)"
        R"("cost":0.5,"fingerprint":"fp_0123456789abcdef",)"
        R"("trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","legs":[{"phase":"full",)"
        R"("pool":"stable","worker":"http://127.0.0.1:1","fingerprint":"fp_0123456789abcdef",)"
        R"("held_ms":40}],"comparison":{"pool":"candidate","differs":true,)"
        R"("differences":["text","finish_reason"],"first_difference":7,"logprob_delta":0.125,)"
        R"("ttft_delta_ms":-1.5,"tbt_delta_ms":0.25}})");
}

TEST(RequestRowTest, WhatWasNotMeasuredIsNull) {
    const std::string json = to_json(RequestRow{});
    EXPECT_NE(json.find(R"("ttft_ms":null,"tbt_ms":null)"), std::string::npos);
    EXPECT_NE(json.find(R"("recompute_cause":null)"), std::string::npos);
    EXPECT_EQ(json.find("cost"), std::string::npos);
    EXPECT_EQ(json.find("weight"), std::string::npos);
}

TEST(RequestRowTest, AnUnknownOutcomeIsAnErrorAndNotAGuess) {
    const auto row = parse_row(R"({"role":"answer","kind":"text","outcome":"splendid"})");
    ASSERT_FALSE(row.has_value());
    EXPECT_EQ(row.error().place(), "outcome");
    EXPECT_FALSE(parse_row("{}").has_value());
    EXPECT_FALSE(parse_row("").has_value());
}

TEST(RequestRowTest, OnlyLegsInItsOwnPoolCountAsHeld) {
    RequestRow row = example_row();
    row.legs.push_back({.pool = "stable", .held = std::chrono::microseconds(2'000)});
    row.legs.push_back({.pool = "elsewhere", .held = std::chrono::microseconds(9'000)});
    EXPECT_EQ(row.held(), std::chrono::microseconds(42'000));
}

}  // namespace
}  // namespace sluice::record
