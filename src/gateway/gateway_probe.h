#pragma once

// The gateway's metrics (names and labels: docs/metrics.md). One object, so that a counter
// is changed in one place only.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "base/request_class.h"

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
    void leases(std::uint64_t live) { leases_.set(static_cast<double>(live)); }
    void retried() { retries_.add(); }
    void resumed(std::string_view reason) { resumes_.with({reason}).add(); }

private:
    metrics::Family<metrics::Counter> requests_;
    metrics::Family<metrics::Histogram> ttft_;
    metrics::Family<metrics::Histogram> tbt_;
    metrics::Gauge open_streams_;
    metrics::Gauge queue_depth_;
    metrics::Gauge leases_;
    metrics::Counter retries_;
    metrics::Family<metrics::Counter> resumes_;
};

}  // namespace sluice::gateway
