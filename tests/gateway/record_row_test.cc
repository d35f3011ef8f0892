#include "gateway/record_row.h"

#include <boost/json/parse.hpp>

#include "gateway/record_keeper.h"
#include "gateway/record_query.h"
#include "record/version_manifest.h"

namespace sluice::gateway {
namespace {

using std::chrono::milliseconds;

RequestReport report() {
    const auto versions = std::make_shared<port::ServerInfo>();
    versions->model = "Krill";
    versions->device_memory_bytes = 7;
    RequestReport report{.rid = "r1",
                         .request_id = "theirs",
                         .time = std::chrono::system_clock::time_point(milliseconds(123)),
                         .tenant = "acme",
                         .kind = RequestKind::kSeeded,
                         .schema_digest = "d1",
                         .pool = "stable",
                         .prompt_tokens = 20'000,
                         .ttft = milliseconds(12),
                         .duration = milliseconds(40),
                         .outcome = Outcome::kWorkerLost,
                         .error_code = "worker_lost",
                         .status = 502};
    report.tbt.add(milliseconds(10), 2);
    report.legs = {{.pool = "stable",
                    .worker = "stable-0",
                    .versions = versions,
                    .began = milliseconds(1),
                    .ended = milliseconds(31)}};
    return report;
}

TEST(RecordRowTest, AComparisonSaysWithWhomAndInWhat) {
    const traffic::Comparison comparison{.differences = {"tokens"},
                                         .first_difference = 3,
                                         .logprob_delta = 0.5,
                                         .ttft_delta = milliseconds(-2),
                                         .tbt_delta = std::nullopt};
    EXPECT_EQ(comparison_of(comparison, "stable"),
              (record::Comparison{.pool = "stable",
                                  .differences = {"tokens"},
                                  .first_difference = 3,
                                  .logprob_delta = 0.5,
                                  .ttft_delta = milliseconds(-2),
                                  .tbt_delta = std::nullopt}));
}

TEST(RecordRowTest, ARowSaysWhatTheReportSays) {
    const record::RequestRow row =
        row_of(report(), [](const auto& worker) { return "fp of " + worker->model; });
    EXPECT_EQ(row.rid, "r1");
    EXPECT_EQ(row.request_id, "theirs");
    EXPECT_EQ(row.time_ms, 123);
    EXPECT_EQ(row.bucket(), LengthBucket::kTo64k);
    EXPECT_EQ(row.ttft, milliseconds(12));
    EXPECT_EQ(row.gaps.count(), 2U);
    EXPECT_EQ(row.held(), milliseconds(30));
    EXPECT_EQ(row.device_memory_bytes, 7U);
    EXPECT_EQ(row.error, "worker_lost");
    EXPECT_EQ(row.schema_digest, "d1");
    EXPECT_EQ(row.legs[0].fingerprint, "fp of Krill");
}

TEST(RecordRowTest, AnAccessLineIsJsonWithoutWhatTheClientWrote) {
    const auto line = boost::json::parse(access_line(report())).as_object();
    EXPECT_EQ(line.at("request_id"), "theirs");
    EXPECT_EQ(line.at("status"), 502);
    EXPECT_EQ(line.at("outcome"), "worker_lost");
    EXPECT_EQ(line.at("ttft_ms"), 12);
}

TEST(RecordQueryTest, WithoutATimeItIsTheLastHourAndOfOneRequestAllTime) {
    constexpr std::int64_t kNow = 100'000'000;
    EXPECT_EQ(read_record_query({}, kNow)->since_ms, kNow - 3'600'000);
    EXPECT_EQ(read_record_query({{"since", "30m"}}, kNow)->since_ms, kNow - 1'800'000);
    EXPECT_EQ(read_record_query({{"id", "x"}}, kNow)->since_ms, 0);
    EXPECT_EQ(read_record_query({{"limit", "5"}, {"role", "shadow"}}, kNow)->limit, 5U);
}

TEST(RecordQueryTest, WhatIsWrongIsNamed) {
    const auto place = [](const QueryFields& fields) {
        const auto query = read_record_query(fields, 0);
        return query ? std::string("none") : query.error().place();
    };
    EXPECT_EQ(place({{"role", "both"}}), "role");
    EXPECT_EQ(place({{"limit", "1x"}}), "limit");
    EXPECT_EQ(place({{"limit", "-1"}}), "limit");
    EXPECT_EQ(place({{"sinse", "1h"}}), "sinse");
    EXPECT_NE(place({{"since", "yesterday"}}), "none");
    EXPECT_FALSE(read_card_query({{"baseline", "a"}}, 0).has_value());
    EXPECT_EQ(read_card_query({{"baseline", "a"}, {"candidate", "b"}}, 7'200'000)->from_ms,
              3'600'000);
}

}  // namespace
}  // namespace sluice::gateway
