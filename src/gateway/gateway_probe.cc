#include "gateway/gateway_probe.h"

namespace sluice::gateway {

namespace {

std::array<metrics::Gauge, 4> lease_gauges(metrics::Registry& registry) {
    using routing::LegPhase;
    auto family = registry.gauge("sluice_leases", "Live leases on workers.", {"phase"});
    const auto of = [&](LegPhase phase) { return family.with({routing::to_string(phase)}); };
    return {of(LegPhase::kFull), of(LegPhase::kEncode), of(LegPhase::kPrefill),
            of(LegPhase::kDecode)};
}

}  // namespace

GatewayProbe::GatewayProbe(metrics::Registry& registry)
    : requests_(registry.counter("sluice_requests_total", "Requests by how they ended.",
                                 {"pool", "kind", "bucket", "outcome"})),
      ttft_(registry.histogram("sluice_ttft_seconds",
                               "From a request's arrival to its first token.",
                               metrics::latency_bounds(), {"pool"})),
      tbt_(registry.histogram("sluice_tbt_seconds", "Between two tokens of one answer.",
                              metrics::latency_bounds(), {"pool"})),
      open_streams_(
          registry.gauge("sluice_open_streams", "Requests that are being answered.").with({})),
      queue_depth_(
          registry.gauge("sluice_queue_depth", "Requests that wait for a worker.").with({})),
      leases_(lease_gauges(registry)),
      quarantined_(registry
                       .counter("sluice_quarantined_total",
                                "Prompts that cost more workers than a request may.")
                       .with({})),
      resumes_waiting_(registry
                           .gauge("sluice_resumes_waiting",
                                  "Requests that lost their worker and wait for their turn.")
                           .with({})),
      retries_(
          registry.counter("sluice_retries_total", "Legs started again before the first token.")
              .with({})),
      resumes_(registry.counter("sluice_resumes_total",
                                "Streams that went on after their worker was lost.", {"reason"})) {}

PoolMeter GatewayProbe::meter(std::string_view pool) {
    return {.ttft = ttft_.with({pool}), .tbt = tbt_.with({pool})};
}

void GatewayProbe::finished(std::string_view pool, RequestKind kind, LengthBucket bucket,
                            Outcome outcome) {
    requests_.with({pool, to_string(kind), to_string(bucket), to_string(outcome)}).add();
}

}  // namespace sluice::gateway
