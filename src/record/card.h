#pragma once

// The acceptance card: a candidate beside the pool that answers, by the length and the kind of
// requests, with a verdict for each row that says no more than the samples allow.
//
// Every number is computed from request rows alone; docs/records.md gives the formulas, and
// tests/record/card_check.py computes them a second time.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/latency_sketch.h"
#include "base/request_class.h"
#include "record/percentiles.h"
#include "record/statistics.h"
#include "record/version_manifest.h"

namespace sluice::record {

enum class Verdict : std::uint8_t { kBetter, kSame, kWorse, kInsufficient };
/// "better", "same", "worse", "insufficient"
[[nodiscard]] std::string_view to_string(Verdict verdict);

/// What one metric says, and why.
struct Judgement {
    std::string metric;  ///< "success", "ttft_p50", "ttft_p99", "tbt_p50", "tbt_p99", "differs"
    Verdict verdict = Verdict::kInsufficient;
    /// Candidate minus baseline for shares, candidate over baseline for times.
    Interval interval;
    double margin = 0.0;  ///< Up to here it counts as noise.
};

struct CardRow {
    LengthBucket bucket = LengthBucket::kTo16k;
    RequestKind kind = RequestKind::kText;
    std::string pool;

    std::uint64_t requests = 0;
    std::map<Outcome, std::uint64_t> outcomes;
    Percentiles ttft;
    Percentiles tbt;
    std::optional<double> cached_share;      ///< Of prompt tokens.
    std::optional<double> recomputed_share;  ///< Of prompt tokens.
    std::uint64_t device_memory_bytes = 0;   ///< The most that was seen; 0 is unknown.
    double cost = 0.0;
    std::optional<double>
        differs_share;                  ///< Of the answers that were compared with the baseline's.
    std::optional<double> noise_floor;  ///< The same of the baseline with itself.
    Verdict verdict = Verdict::kInsufficient;
    std::vector<Judgement> judgements;

    Samples ttft_samples;
    LatencySketch gaps;

    [[nodiscard]] std::uint64_t successes() const;
    [[nodiscard]] std::optional<double> success_rate() const;
    [[nodiscard]] std::optional<double> cost_per_success() const;
};

/// A version that rows of a pool ran on.
struct CardVersion {
    std::string fingerprint;
    std::uint64_t requests = 0;
    VersionManifest manifest;
};

struct Card {
    std::string baseline;
    std::string candidate;
    std::string since;  ///< As it was asked for: "1h".
    std::int64_t from_ms = 0;
    std::int64_t to_ms = 0;
    std::uint64_t min_samples = 0;
    /// By bucket, then kind, the baseline's row before the candidate's.
    std::vector<CardRow> rows;
    std::map<std::string, std::vector<CardVersion>> versions;  ///< By pool.

    /// The worst of the candidate's rows: worse, insufficient, same or better.
    [[nodiscard]] Verdict verdict() const;
};

/// One JSON object on one line.
[[nodiscard]] std::string to_json(const Card& card);
/// A table for terminals.
[[nodiscard]] std::string to_text(const Card& card);
/// One page that needs nothing but a browser.
[[nodiscard]] std::string to_html(const Card& card);

}  // namespace sluice::record
