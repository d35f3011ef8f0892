#include <algorithm>
#include <cmath>

#include "record/card_builder.h"

namespace sluice::record {
namespace {

// Differences up to here are of no interest even if they are certain.
constexpr double kShareMargin = 0.005;
constexpr double kTimeMargin = 0.05;
// "Same" is claimed only if the interval rules out more than this; else the samples are too few.
constexpr double kShareResolution = 0.10;
constexpr double kTimeResolution = 2.0;

enum class Reading { kHigherIsBetter, kHigherIsWorse };

Verdict read_share(Interval interval, double margin, Reading reading) {
    const bool higher = interval.low > margin;
    const bool lower = interval.high < -margin;
    if (higher) return reading == Reading::kHigherIsBetter ? Verdict::kBetter : Verdict::kWorse;
    if (lower) return reading == Reading::kHigherIsBetter ? Verdict::kWorse : Verdict::kBetter;
    const bool resolved =
        interval.high <= margin + kShareResolution && interval.low >= -margin - kShareResolution;
    return resolved ? Verdict::kSame : Verdict::kInsufficient;
}

Verdict read_ratio(Interval interval, double margin) {
    if (interval.low > 1.0 + margin) return Verdict::kWorse;
    if (interval.high < 1.0 / (1.0 + margin)) return Verdict::kBetter;
    const bool resolved = interval.high <= kTimeResolution && interval.low >= 1.0 / kTimeResolution;
    return resolved ? Verdict::kSame : Verdict::kInsufficient;
}

// The ratio's interval holds whenever both quantiles lie in theirs, so it is on the safe side.
std::optional<Interval> ratio_interval(const Samples& baseline, const Samples& candidate,
                                       double share) {
    constexpr double kLeastMs = 0.001;
    const auto a = baseline.quantile_interval(share);
    const auto b = candidate.quantile_interval(share);
    if (!a || !b) return std::nullopt;
    return Interval{.low = b->low / std::max(a->high, kLeastMs),
                    .high = b->high / std::max(a->low, kLeastMs)};
}

// How far apart the baseline and a copy of it on itself are.
double time_margin(const CardGroup& baseline, double min_samples) {
    const auto self = baseline.noise_ttft.quantile(0.5);
    const auto answer = baseline.ttft.quantile(0.5);
    if (!self || !answer || *self <= 0.0 || *answer <= 0.0) return kTimeMargin;
    if (baseline.noise_ttft.effective_size() < min_samples) return kTimeMargin;
    return std::max(kTimeMargin, std::max(*self / *answer, *answer / *self) - 1.0);
}

class Judge {
public:
    Judge(const CardGroup& baseline, const CardGroup& candidate, std::uint64_t min_samples)
        : baseline_(baseline),
          candidate_(candidate),
          min_samples_(static_cast<double>(min_samples)),
          time_margin_(time_margin(baseline, min_samples_)) {}

    std::vector<Judgement> all() {
        success();
        time("ttft_p50", baseline_.ttft, candidate_.ttft, 0.5);
        tail("ttft_p99", baseline_.ttft, candidate_.ttft, 0.99);
        time("tbt_p50", baseline_.tbt_p50, candidate_.tbt_p50, 0.5);
        // Already the p99 of each request: their median says how bad the usual worst gap is.
        tail("tbt_p99", baseline_.tbt_p99, candidate_.tbt_p99, 0.5);
        differs();
        return std::move(judgements_);
    }

private:
    void say(std::string metric, Verdict verdict, Interval interval, double margin) {
        judgements_.push_back({.metric = std::move(metric),
                               .verdict = verdict,
                               .interval = interval,
                               .margin = margin});
    }

    void success() {
        const auto a = static_cast<double>(baseline_.answerable());
        const auto b = static_cast<double>(candidate_.answerable());
        const Interval interval =
            difference_interval(static_cast<double>(baseline_.successes()), a,
                                static_cast<double>(candidate_.successes()), b);
        say("success",
            std::min(a, b) < min_samples_
                ? Verdict::kInsufficient
                : read_share(interval, kShareMargin, Reading::kHigherIsBetter),
            interval, kShareMargin);
    }

    // A metric that one side doesn't have (no token came, no stream) says nothing.
    void time(const char* metric, const Samples& baseline, const Samples& candidate, double share) {
        if (baseline.empty() || candidate.empty()) return;
        const auto interval = ratio_interval(baseline, candidate, share);
        const bool few =
            std::min(baseline.effective_size(), candidate.effective_size()) < min_samples_;
        if (few || !interval) return say(metric, Verdict::kInsufficient, {}, time_margin_);
        say(metric, read_ratio(*interval, time_margin_), *interval, time_margin_);
    }

    // A tail needs hundreds of samples; too few of them don't spoil what the median says.
    void tail(const char* metric, const Samples& baseline, const Samples& candidate, double share) {
        const auto interval = ratio_interval(baseline, candidate, share);
        if (!interval ||
            std::min(baseline.effective_size(), candidate.effective_size()) < min_samples_)
            return;
        const Verdict verdict = read_ratio(*interval, time_margin_);
        if (verdict != Verdict::kInsufficient) say(metric, verdict, *interval, time_margin_);
    }

    void differs() {
        if (candidate_.compared == 0) return;
        const auto compared = static_cast<double>(candidate_.compared);
        const auto differing = static_cast<double>(candidate_.differing);
        const bool measured = static_cast<double>(baseline_.noise_compared) >= min_samples_;
        const Interval interval =
            measured ? difference_interval(static_cast<double>(baseline_.noise_differing),
                                           static_cast<double>(baseline_.noise_compared), differing,
                                           compared)
                     : wilson_interval(differing, compared);
        // Without an A/A pair nobody knows how much an engine differs from itself.
        const bool known = measured || baseline_.exact || candidate_.differing == 0;
        say("differs",
            compared < min_samples_ || !known
                ? Verdict::kInsufficient
                : read_share(interval, kShareMargin, Reading::kHigherIsWorse),
            interval, kShareMargin);
    }

    const CardGroup& baseline_;
    const CardGroup& candidate_;
    double min_samples_;
    double time_margin_;
    std::vector<Judgement> judgements_;
};

}  // namespace

std::vector<Judgement> judge(const CardGroup& baseline, const CardGroup& candidate,
                             std::uint64_t min_samples) {
    return Judge(baseline, candidate, min_samples).all();
}

Verdict verdict_of(const std::vector<Judgement>& judgements) {
    const auto any = [&](Verdict verdict) {
        return std::ranges::find(judgements, verdict, &Judgement::verdict) != judgements.end();
    };
    if (any(Verdict::kWorse)) return Verdict::kWorse;
    if (judgements.empty() || any(Verdict::kInsufficient)) return Verdict::kInsufficient;
    return any(Verdict::kBetter) ? Verdict::kBetter : Verdict::kSame;
}

std::optional<double> noise_floor(const CardGroup& baseline) {
    if (baseline.noise_compared > 0) {
        return static_cast<double>(baseline.noise_differing) /
               static_cast<double>(baseline.noise_compared);
    }
    return baseline.exact ? std::optional(0.0) : std::nullopt;
}

}  // namespace sluice::record
