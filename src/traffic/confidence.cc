#include "traffic/confidence.h"

#include <algorithm>
#include <cmath>

namespace sluice::traffic {
namespace {

constexpr std::chrono::seconds kSpan{1};
constexpr int kBisections = 50;

/// Kullback-Leibler divergence of two coins, in nats.
double divergence(double p, double q) {
    const auto term = [](double a, double b) { return a <= 0.0 ? 0.0 : a * std::log(a / b); };
    return term(p, q) + term(1.0 - p, 1.0 - q);
}

/// The share furthest from `near` towards `far` whose divergence is within reach.
double furthest(const Tally& tally, double near, double far, double alpha) {
    const double reach = -std::log(alpha) / tally.trials;
    for (int i = 0; i < kBisections; ++i) {
        const double middle = 0.5 * (near + far);
        (divergence(tally.share(), middle) <= reach ? near : far) = middle;
    }
    return far;
}

}  // namespace

double lower_bound(const Tally& tally, double alpha) {
    if (tally.trials <= 0.0 || tally.events <= 0.0) return 0.0;
    return furthest(tally, tally.share(), 0.0, alpha);
}

double upper_bound(const Tally& tally, double alpha) {
    if (tally.trials <= 0.0 || tally.events >= tally.trials) return 1.0;
    return furthest(tally, tally.share(), 1.0, alpha);
}

void ClusteredTally::close(const Span& span, double& trials2, double& events2, double& product) {
    trials2 += span.trials * span.trials;
    events2 += span.events * span.events;
    product += span.trials * span.events;
}

void ClusteredTally::add(std::chrono::steady_clock::time_point at, bool event) {
    if (spans_ == 0 || at >= span_end_) {
        close(span_, trials2_, events2_, product_);
        span_ = {};
        span_end_ = at + kSpan;
        ++spans_;
    }
    span_.trials += 1.0;
    span_.events += event ? 1.0 : 0.0;
    ++trials_;
    events_ += event ? 1 : 0;
}

double ClusteredTally::design_effect() const {
    const double trials = static_cast<double>(trials_);
    const double share = trials_ == 0 ? 0.0 : static_cast<double>(events_) / trials;
    const double independent = share * (1.0 - share) * trials;
    if (independent <= 0.0 || spans_ < 2) return 1.0;
    double trials2 = trials2_;
    double events2 = events2_;
    double product = product_;
    close(span_, trials2, events2, product);
    // Sum over the spans of (events - share * trials)^2, as the ratio estimator has it.
    const double between = events2 - 2.0 * share * product + share * share * trials2;
    const double spans = static_cast<double>(spans_);
    return std::max(1.0, between / independent * spans / (spans - 1.0));
}

Tally ClusteredTally::effective() const {
    const double effect = design_effect();
    return {.events = static_cast<double>(events_) / effect,
            .trials = static_cast<double>(trials_) / effect};
}

}  // namespace sluice::traffic
