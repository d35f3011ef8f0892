#pragma once

// The gateway's metrics (names and labels: docs/metrics.md). One object, so that a counter
// is changed in one place only.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/metrics.h"

namespace sluice::gateway {

/// How a request ended.
enum class Outcome : std::uint8_t {
    kOk,
    kTimeoutQueue,
    kTimeoutPrefill,
    kTimeoutDecode,
    kClientGone,
    kWorkerLost,
    kRejected,  ///< The client's mistake, or no room.
    kError,
};

[[nodiscard]] std::string_view to_string(Outcome outcome);

/// "<=16k", "16k-64k", "64k-256k", ">256k": prompt tokens.
[[nodiscard]] std::string_view length_bucket(std::uint64_t prompt_tokens);

/// Labels of a request once they are known.
struct RequestClass {
    std::string_view kind = "text";  ///< text, seeded
    std::string_view bucket = "<=16k";
};

class GatewayProbe {
public:
    GatewayProbe(metrics::Registry& registry, std::string pool);

    void finished(const RequestClass& request, Outcome outcome);
    void first_token(std::chrono::nanoseconds since_arrival);
    /// `tokens` came together `gap` after those before; the gap is spread evenly over them.
    void tokens(std::chrono::nanoseconds gap, std::size_t tokens);
    void stream_opened() { open_streams_.add(1); }
    void stream_closed() { open_streams_.add(-1); }
    void queue_depth(std::size_t requests) { queue_depth_.set(static_cast<double>(requests)); }
    void leases(std::uint64_t live) { leases_.set(static_cast<double>(live)); }
    void retried() { retries_.add(); }
    void resumed(std::string_view reason) { resumes_.with({reason}).add(); }

private:
    std::string pool_;
    metrics::Family<metrics::Counter> requests_;
    metrics::Histogram ttft_;
    metrics::Histogram tbt_;
    metrics::Gauge open_streams_;
    metrics::Gauge queue_depth_;
    metrics::Gauge leases_;
    metrics::Counter retries_;
    metrics::Family<metrics::Counter> resumes_;
};

}  // namespace sluice::gateway
