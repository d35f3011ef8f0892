#pragma once

// What answers cost. A pool costs its price for every hour it is there, busy or idle. That bill, for
// the window of time that is asked about, is shared out among all attempts that arrived in the
// window, failed ones and shadows included, in proportion to the time each kept a place on a worker
// busy (`held`). So:
//
//   cost(row) = bill(pool, window) * held(row) * weight(row) / sum over rows (held * weight)
//
// and the costs of a window's rows sum to the bill. An attempt that never reached a worker costs
// nothing; if none did, the bill stays unattributed. Because idle time is shared out as well, a
// row's cost depends on the window: it is a share, not a property of the request.
//
//   cost per success = sum of the costs of a group's rows / its successes

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::record {

/// From `since_ms` on, until the next one of the same pool.
struct PriceStep {
    std::int64_t since_ms = 0;
    double price_hour = 0.0;
};

/// What a pool cost in [from_ms, to_ms): nothing before its first step. `steps` ascend.
[[nodiscard]] double bill(const std::vector<PriceStep>& steps, std::int64_t from_ms,
                          std::int64_t to_ms);

struct PoolBill {
    double bill = 0.0;
    /// Of all rows in the window, weights included.
    std::chrono::microseconds held{0};

    /// Share of a row that held its worker for `held` and stands for `weight` requests.
    [[nodiscard]] double share(std::chrono::microseconds row_held, std::uint64_t weight) const;
    /// What no row can be charged with.
    [[nodiscard]] double unattributed() const { return held.count() == 0 ? bill : 0.0; }
};

}  // namespace sluice::record
