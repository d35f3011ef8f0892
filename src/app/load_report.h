#pragma once

// What a load test saw, as numbers a person can act on: speed, latencies, what went wrong, goodput under
// the objectives given, and the acceptance card of all requests.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/latency_sketch.h"
#include "base/request_class.h"
#include "record/card_builder.h"
#include "record/request_row.h"
#include "record/statistics.h"
#include "trace/stream_call.h"

namespace sluice::app {

/// Service level objectives; absent ones are met by every answer.
struct LoadObjectives {
    std::optional<std::chrono::milliseconds> ttft;
    std::optional<std::chrono::milliseconds> tbt;  ///< The 99th percentile within an answer.
};

/// One request as a record: its row is what the card and `--output` are made of.
[[nodiscard]] record::RequestRow load_row(const std::string& name, std::uint64_t number,
                                          const trace::PlannedRequest& request,
                                          const trace::CallResult& result);

class LoadReport {
public:
    LoadReport(std::string name, std::string model, LoadObjectives objectives);

    /// Counts a request; `row` is its load_row.
    void add(const record::RequestRow& row, const trace::CallResult& result);

    /// Text for people, or one JSON object; `elapsed` is the test's time.
    [[nodiscard]] std::string text(std::chrono::duration<double> elapsed) const;
    [[nodiscard]] std::string json(std::chrono::duration<double> elapsed) const;
    [[nodiscard]] record::Card card() const;

    [[nodiscard]] std::uint64_t ended() const { return ended_; }
    [[nodiscard]] std::uint64_t succeeded() const { return succeeded_; }

private:
    [[nodiscard]] bool meets_objectives(const record::RequestRow& row) const;

    std::string name_;
    std::string model_;
    LoadObjectives objectives_;
    record::CardBuilder card_;
    std::int64_t start_ms_;  ///< Since 1970.
    std::uint64_t ended_ = 0;
    std::uint64_t succeeded_ = 0;
    std::uint64_t good_ = 0;
    std::uint64_t prompt_tokens_ = 0;
    std::uint64_t cached_tokens_ = 0;
    std::uint64_t completion_tokens_ = 0;
    record::Samples ttft_;  ///< Milliseconds, of successes.
    LatencySketch gaps_;
    std::map<std::string, std::uint64_t> outcomes_;
    std::map<std::string, std::uint64_t> errors_;  ///< By their words, the first few kinds.
};

}  // namespace sluice::app
