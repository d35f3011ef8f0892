#include "gateway/gateway_probe.h"

#include <utility>

namespace sluice::gateway {
namespace {

double seconds(std::chrono::nanoseconds duration) {
    return std::chrono::duration<double>(duration).count();
}

}  // namespace

std::string_view to_string(Outcome outcome) {
    switch (outcome) {
        case Outcome::kOk: return "ok";
        case Outcome::kTimeoutQueue: return "timeout_queue";
        case Outcome::kTimeoutPrefill: return "timeout_prefill";
        case Outcome::kTimeoutDecode: return "timeout_decode";
        case Outcome::kClientGone: return "client_gone";
        case Outcome::kWorkerLost: return "worker_lost";
        case Outcome::kRejected: return "rejected";
        case Outcome::kError: return "error";
    }
    return "error";
}

std::string_view length_bucket(std::uint64_t prompt_tokens) {
    constexpr std::uint64_t kThousand = 1024;
    if (prompt_tokens <= 16 * kThousand) return "<=16k";
    if (prompt_tokens <= 64 * kThousand) return "16k-64k";
    if (prompt_tokens <= 256 * kThousand) return "64k-256k";
    return ">256k";
}

GatewayProbe::GatewayProbe(metrics::Registry& registry, std::string pool)
    : pool_(std::move(pool)),
      requests_(registry.counter("sluice_requests_total", "Requests by how they ended.",
                                 {"pool", "kind", "bucket", "outcome"})),
      ttft_(registry
                .histogram("sluice_ttft_seconds", "From a request's arrival to its first token.",
                           metrics::latency_bounds())
                .with({})),
      tbt_(registry
               .histogram("sluice_tbt_seconds", "Between two tokens of one answer.",
                          metrics::latency_bounds())
               .with({})),
      open_streams_(
          registry.gauge("sluice_open_streams", "Requests that are being answered.").with({})),
      queue_depth_(
          registry.gauge("sluice_queue_depth", "Requests that wait for a worker.").with({})),
      leases_(registry.gauge("sluice_leases", "Live leases on workers.", {"phase"}).with({"full"})),
      retries_(
          registry.counter("sluice_retries_total", "Legs started again before the first token.")
              .with({})),
      resumes_(registry.counter("sluice_resumes_total",
                                "Streams that went on after their worker was lost.", {"reason"})) {}

void GatewayProbe::finished(const RequestClass& request, Outcome outcome) {
    requests_.with({pool_, request.kind, request.bucket, to_string(outcome)}).add();
}

void GatewayProbe::first_token(std::chrono::nanoseconds since_arrival) {
    ttft_.observe(seconds(since_arrival));
}

void GatewayProbe::tokens(std::chrono::nanoseconds gap, std::size_t tokens) {
    if (tokens == 0) return;
    const double share = seconds(gap) / static_cast<double>(tokens);
    for (std::size_t i = 0; i < tokens; ++i) tbt_.observe(share);
}

}  // namespace sluice::gateway
