#pragma once

// Gathers the rows of two pools into a card.

#include <map>
#include <string>
#include <utility>

#include "record/card.h"
#include "record/request_row.h"

namespace sluice::record {

struct CardOptions {
    std::string baseline;
    std::string candidate;  ///< The baseline itself: then the card shows that pool alone.
    std::string since;
    std::int64_t from_ms = 0;
    std::int64_t to_ms = 0;
    /// Fewer attempts on either side are no ground for a verdict.
    std::uint64_t min_samples = 50;
};

/// All that one row of the card is computed from.
struct CardGroup {
    std::uint64_t requests = 0;
    std::map<Outcome, std::uint64_t> outcomes;
    std::uint64_t prompt_tokens = 0;
    std::uint64_t cached_tokens = 0;
    std::uint64_t recomputed_tokens = 0;
    std::uint64_t device_memory_bytes = 0;
    double cost = 0.0;
    Samples ttft;                ///< Milliseconds.
    LatencySketch gaps;          ///< Of all tokens.
    Samples tbt_p50;             ///< Milliseconds, of each request: tokens of one are no
    Samples tbt_p99;             ///< independent samples.
    std::uint64_t compared = 0;  ///< With the baseline, by another pool.
    std::uint64_t differing = 0;
    // An A/A pair: the baseline's answer compared with a copy on the baseline itself.
    std::uint64_t noise_compared = 0;
    std::uint64_t noise_differing = 0;
    Samples noise_ttft;
    bool exact = false;  ///< Its engine gives equal tokens for equal requests by construction.

    /// Attempts that ended by the pool's doing: successes and its own failures.
    [[nodiscard]] std::uint64_t answerable() const;
    [[nodiscard]] std::uint64_t successes() const;
};

class CardBuilder {
public:
    /// `manifests` by fingerprint.
    CardBuilder(CardOptions options, std::map<std::string, VersionManifest> manifests)
        : options_(std::move(options)), manifests_(std::move(manifests)) {}

    /// Rows of other pools are passed over.
    void add(const RequestRow& row, double cost);

    [[nodiscard]] Card build() const;

private:
    using Class = std::pair<LengthBucket, RequestKind>;

    void compare(const RequestRow& row, CardGroup& group);
    void count_versions(const RequestRow& row);
    [[nodiscard]] CardRow make_row(Class of, const std::string& pool, const CardGroup& group) const;
    [[nodiscard]] std::map<std::string, std::vector<CardVersion>> versions() const;

    CardOptions options_;
    std::map<std::string, VersionManifest> manifests_;
    std::map<Class, std::map<std::string, CardGroup>> groups_;
    std::map<std::string, std::map<std::string, std::uint64_t>> versions_;  ///< pool, fingerprint
};

/// Lays a candidate beside its baseline (docs/records.md, "Verdicts").
[[nodiscard]] std::vector<Judgement> judge(const CardGroup& baseline, const CardGroup& candidate,
                                           std::uint64_t min_samples);
/// Of a row, from those of its metrics.
[[nodiscard]] Verdict verdict_of(const std::vector<Judgement>& judgements);

/// Share of A/A comparisons that differ; 0 for an exact engine without any; else unknown.
[[nodiscard]] std::optional<double> noise_floor(const CardGroup& baseline);

}  // namespace sluice::record
