#pragma once

// The gateway's metrics (names and labels: docs/metrics.md). One object, so that a counter
// is changed in one place only.

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "base/request_class.h"
#include "routing/leg_phase.h"

namespace sluice::gateway {

/// Handles of one pool's distributions.
struct PoolMeter {
    metrics::Histogram ttft;
    metrics::Histogram tbt;
};

class GatewayProbe {
public:
    explicit GatewayProbe(metrics::Registry& registry);

    [[nodiscard]] PoolMeter meter(std::string_view pool);

    /// `pool` is empty for what was refused before a pool was chosen.
    void finished(std::string_view pool, RequestKind kind, LengthBucket bucket, Outcome outcome);
    void stream_opened() { open_streams_.add(1); }
    void stream_closed() { open_streams_.add(-1); }
    void queue_depth(std::size_t requests) { queue_depth_.set(static_cast<double>(requests)); }
    void lease_began(routing::LegPhase phase) { leases_[std::size_t(phase)].add(1); }
    void lease_ended(routing::LegPhase phase) { leases_[std::size_t(phase)].add(-1); }
    void quarantined() { quarantined_.add(); }
    void resumes_waiting(std::size_t requests) {
        resumes_waiting_.set(static_cast<double>(requests));
    }
    void retried() { retries_.add(); }
    void resumed(std::string_view reason) { resumes_.with({reason}).add(); }

private:
    metrics::Family<metrics::Counter> requests_;
    metrics::Family<metrics::Histogram> ttft_;
    metrics::Family<metrics::Histogram> tbt_;
    metrics::Gauge open_streams_;
    metrics::Gauge queue_depth_;
    std::array<metrics::Gauge, 4> leases_;  ///< By phase.
    metrics::Counter quarantined_;
    metrics::Gauge resumes_waiting_;
    metrics::Counter retries_;
    metrics::Family<metrics::Counter> resumes_;
};

}  // namespace sluice::gateway
