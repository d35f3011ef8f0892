#pragma once

// Watches one guard of a plan: whether a pool is worse than the guard allows, beyond what chance
// explains.
//
// A guard is looked at again and again, so a test that errs once in twenty would go off within
// minutes. Three things keep it quiet on an equal pair and still quick on a fault:
// - a limit counts as exceeded only if the least believable value of the pool (confidence.h) lies
//   above it, and, for a ratio, above the largest believable value of the stable pool times the ratio;
// - a time is compared by counting: the share of requests slower than the limit, so that no shape
//   of a distribution is assumed;
// - it must be so in `kConfirmations` looks in a row, each with new samples of the pool.

#include <cstdint>
#include <optional>
#include <string>

#include "traffic/plan.h"
#include "traffic/sample_window.h"

namespace sluice::traffic {

class GuardWatch {
public:
    static constexpr int kConfirmations = 3;

    explicit GuardWatch(Guard guard) : guard_(std::move(guard)) {}

    /// Looks at both pools' samples. The reason for a rollback once it is certain: "ttft_p95 of
    /// candidate is 1.92 s, above 1.30 s (1.3 times stable's 1.00 s), by 640 requests".
    [[nodiscard]] std::optional<std::string> look(const SampleWindow& pool,
                                                  const SampleWindow& stable, Time now);

    [[nodiscard]] const Guard& guard() const { return guard_; }
    /// Looks in a row that found the limit exceeded.
    [[nodiscard]] int confirmations() const { return confirmations_; }

private:
    Guard guard_;
    int confirmations_ = 0;
    std::uint64_t seen_ = 0;  ///< SampleWindow::total() of the pool at the last look.
};

}  // namespace sluice::traffic
