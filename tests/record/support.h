#pragma once

// Rows and places for the tests of records.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "record/record_reader.h"
#include "record/request_row.h"

namespace sluice::record {

/// A folder that goes away with its test.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "sluice-record-XXXXXX").string();
        path_ = ::mkdtemp(pattern.data());
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

/// One field of each kind is set.
inline RequestRow example_row(const std::string& rid = "r1", Outcome outcome = Outcome::kOk) {
    RequestRow row{.rid = rid,
                   .request_id = "named " + rid,
                   .time_ms = 1'800'000'000'123,
                   .tenant = "acme",
                   .pool = "stable",
                   .kind = RequestKind::kSeeded,
                   .prompt_tokens = 20'000,
                   .cached_tokens = 19'968,
                   .cached_by_source = {{"dram", 64}, {"pool", 19'904}},
                   .kv_decision = port::KvDecision{.loads = {{.source = "dram",
                                                              .choice = "load",
                                                              .tokens = 64,
                                                              .predicted_us = 1,
                                                              .compute_us = 2,
                                                              .queue_us = 3,
                                                              .took_us = 4}},
                                                   .compute_predicted_us = 5,
                                                   .compute_took_us = 6},
                   .completion_tokens = 3,
                   .ttft = std::chrono::microseconds(12'345),
                   .duration = std::chrono::microseconds(45'678),
                   .outcome = outcome,
                   .resumes = 1,
                   .retries = 2,
                   .recomputed_tokens = 64,
                   .recompute_cause = RecomputeCause::kLoss,
                   .schema_digest = "ab12",
                   .device_memory_bytes = 141'000'000'000,
                   .fingerprint = "fp_0123456789abcdef",
                   .trace_id = "4bf92f3577b34da6a3ce929d0e0e4736",
                   .legs = {{.pool = "stable",
                             .worker = "http://127.0.0.1:1",
                             .fingerprint = "fp_0123456789abcdef",
                             .held = std::chrono::microseconds(40'000)}},
                   .comparison = Comparison{.pool = "candidate",
                                            .differences = {"text", "finish_reason"},
                                            .first_difference = 7,
                                            .logprob_delta = 0.125,
                                            .ttft_delta = std::chrono::microseconds(-1'500),
                                            .tbt_delta = std::chrono::microseconds(250)}};
    row.gaps.add(std::chrono::milliseconds(10));
    row.gaps.add(std::chrono::milliseconds(20));
    if (is_failure(outcome)) row.error = "worker_lost";
    return row;
}

/// Every row of a query with its cost, in order.
struct ReadRow {
    RequestRow row;
    double cost = 0.0;
};
inline std::vector<ReadRow> read_all(const std::string& path, const RecordQuery& query = {},
                                     std::int64_t now_ms = 0) {
    std::vector<ReadRow> rows;
    auto reader = RecordReader::open(path);
    EXPECT_TRUE(reader.has_value()) << reader.error().to_string();
    if (!reader) return rows;
    const auto done = reader->for_each(query, now_ms, [&](const RequestRow& row, double cost) {
        rows.push_back({row, cost});
        return true;
    });
    EXPECT_TRUE(done.has_value()) << done.error().to_string();
    return rows;
}

}  // namespace sluice::record
