#pragma once

// `sluice gateway`: one gateway as a process, from its options to the last drained request.

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "gateway/fair_gate.h"
#include "gateway/gateway.h"
#include "gateway/plan_service.h"
#include "gateway/protection.h"

namespace sluice::gateway {

/// A pool of engines of our own, before its model was read.
struct NativePoolSetup {
    std::string name;
    /// Whose tokenizer and dialect the pool uses: a path, or the built-in "krill".
    std::string model = "krill";
    protocol::Thinking thinking = protocol::Thinking::kOff;
    std::vector<discovery::WorkerEntry> workers;
    std::chrono::milliseconds stall_time{15'000};  ///< Longest silence of a worker that answers.
};

/// What is kept and told of requests.
struct RecordSetup {
    std::string folder;  ///< Empty keeps no records.
    std::chrono::milliseconds retention_age{};
    std::uint64_t retention_bytes = 0;
    std::map<std::string, double> prices;  ///< Of the pools, an hour.
    bool access_log = false;
    std::string otlp_endpoint;  ///< Empty exports no traces.
};

struct GatewayProcessOptions {
    GatewayOptions gateway;  ///< Its native pools come from `native`.
    std::vector<NativePoolSetup> native;
    RecordSetup records;
    PlanServiceOptions plan;  ///< Comparisons are written into the records.
    /// Reads the configuration's plan again, on SIGHUP; empty: there is nothing to read.
    std::function<Result<traffic::Plan>()> read_plan{};
    std::chrono::milliseconds grace = std::chrono::seconds(30);
    ProtectionOptions protection;
    FairGateOptions admission;
};

struct GatewayAddresses {
    std::string url;  ///< "http://127.0.0.1:8080"
    std::string admin;
};

/// Told as things happen, on the event loop's thread.
struct GatewayEvents {
    std::function<void(const GatewayAddresses&)> on_listening;
    std::function<void(const GatewayAddresses&)> on_ready;  ///< Once, when a worker can answer.
};

/// Runs until SIGTERM or SIGINT, then drains; returns the signal. A second signal doesn't wait. Keys
/// and certificate are read again when their files change, and on SIGHUP; the plan on SIGHUP. An error if others could
/// reach an address that nothing protects.
[[nodiscard]] Result<int> run_gateway(GatewayProcessOptions options, const GatewayEvents& events);

}  // namespace sluice::gateway
