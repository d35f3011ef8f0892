#pragma once

// What others do on a worker, from what it reports of itself.
//
// A worker's own report counts everybody's requests, ours too. What it counted beyond our leases at
// that time is foreign: other gateways', or what somebody sends it directly. Load is that plus our
// leases as they are now. A report grows old, and then it is the last thing known, never "idle":
// a worker that has not reported for long is taken for as busy as its like.
//
// Not thread-safe.

#include <cstdint>

#include "routing/ledger.h"
#include "routing/time.h"

namespace sluice::routing {

/// A worker's own count, at the time it is handed in.
struct Report {
    std::uint32_t requests = 0;  ///< Running and waiting.
    double kv_share = 0.0;       ///< Of its pool that running requests hold: 0 to 1.
};

class ReportedLoad {
public:
    /// `ours` is what our leases on the worker come to now; `kv_capacity` in tokens, 0 if unknown.
    void take(const Report& report, const Load& ours, std::uint64_t kv_capacity, Time now);
    void forget() { *this = {}; }

    /// Requests and KV tokens that are not ours; the rest is zero. Where the last report is old,
    /// or there is none, at least `usual`.
    [[nodiscard]] const Load& foreign(const Load& usual, Time now) const {
        return fresh(now) || foreign_.requests >= usual.requests ? foreign_ : usual;
    }
    /// Of the last report, whatever its age.
    [[nodiscard]] const Load& last() const { return foreign_; }
    [[nodiscard]] bool fresh(Time now) const { return reported_ && now < fresh_until_; }
    [[nodiscard]] bool reported() const { return reported_; }

private:
    Load foreign_;
    std::uint32_t previous_ = 0;  ///< Requests beyond ours in the report before.
    Time fresh_until_{};
    bool reported_ = false;
};

}  // namespace sluice::routing
