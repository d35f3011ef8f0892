#include "worker/worker_metrics.h"

#include <algorithm>
#include <chrono>

#include "worker/translation.h"

namespace sluice::worker {
namespace {

void raise(metrics::Counter& counter, std::uint64_t now, std::uint64_t before) {
    if (now > before) counter.add(static_cast<double>(now - before));
}

}  // namespace

WorkerMetrics::WorkerMetrics()
    : running_(
          registry_.gauge("sluice_engine_running", "Requests that take part in steps").with({})),
      waiting_(registry_.gauge("sluice_engine_waiting", "Requests that wait for a place").with({})),
      tokens_(registry_.counter("sluice_engine_tokens_total",
                                "Tokens computed, by the phase of their request", {"phase"})),
      prefill_tokens_(tokens_.with({"prefill"})),
      decode_tokens_(tokens_.with({"decode"})),
      cached_tokens_(registry_
                         .counter("sluice_engine_cached_tokens_total",
                                  "Prompt tokens that were not computed", {"source"})
                         .with({"pool"})),
      preemptions_(registry_
                       .counter("sluice_engine_preemptions_total",
                                "Requests that gave their blocks up for others")
                       .with({})),
      drafts_(registry_.counter("sluice_draft_tokens_total",
                                "Tokens that were guessed, by what the sampler made of them",
                                {"result"})),
      drafts_accepted_(drafts_.with({"accepted"})),
      drafts_rejected_(drafts_.with({"rejected"})),
      mtp_drafts_(registry_.counter("sluice_mtp_draft_tokens_total",
                                    "Those of the guessed tokens that came from the MTP head",
                                    {"result"})),
      mtp_accepted_(mtp_drafts_.with({"accepted"})),
      mtp_rejected_(mtp_drafts_.with({"rejected"})),
      step_seconds_(registry_
                        .histogram("sluice_engine_step_seconds", "Time of one step",
                                   metrics::latency_bounds())
                        .with({})),
      kv_bytes_(
          registry_.gauge("sluice_kv_bytes", "KV blocks held or kept", {"tier"}).with({"pool"})),
      kv_hits_(
          registry_.counter("sluice_kv_hits_total", "Blocks of prompts that were found", {"tier"})
              .with({"pool"})),
      kv_misses_(
          registry_
              .counter("sluice_kv_misses_total", "Blocks of prompts that were not found", {"tier"})
              .with({"pool"})),
      kv_evictions_(registry_.counter("sluice_kv_evictions_total", "Blocks given up", {"cause"})
                        .with({"space"})) {}

void WorkerMetrics::on_step(const engine::StepReport& step) {
    prefill_tokens_.add(static_cast<double>(step.prefill_tokens));
    decode_tokens_.add(static_cast<double>(step.decode_tokens));
    drafts_accepted_.add(static_cast<double>(step.accepted));
    drafts_rejected_.add(static_cast<double>(step.drafted - step.accepted));
    mtp_accepted_.add(static_cast<double>(step.mtp_accepted));
    mtp_rejected_.add(static_cast<double>(step.mtp_drafted - step.mtp_accepted));
    step_seconds_.observe(std::chrono::duration<double>(step.duration).count());
}

void WorkerMetrics::on_admitted(std::uint64_t prompt_tokens, std::uint64_t cached_tokens) {
    // The last token is always computed, so its block can't be a hit.
    const std::uint64_t asked =
        (std::max<std::uint64_t>(prompt_tokens, 1) - 1) / engine::Engine::kBlockTokens;
    const std::uint64_t hits = std::min(asked, cached_tokens / engine::Engine::kBlockTokens);
    kv_hits_.add(static_cast<double>(hits));
    kv_misses_.add(static_cast<double>(asked - hits));
}

void WorkerMetrics::read(const engine::Engine& engine) {
    const engine::EngineStats now = engine.stats();
    running_.set(static_cast<double>(now.running));
    waiting_.set(static_cast<double>(now.waiting));
    kv_bytes_.set(static_cast<double>((now.blocks_held + now.blocks_kept) * block_bytes(engine)));
    raise(cached_tokens_, now.cached_tokens, last_.cached_tokens);
    raise(preemptions_, now.preemptions, last_.preemptions);
    raise(kv_evictions_, now.evictions, last_.evictions);
    last_ = now;
}

std::string WorkerMetrics::text(const engine::Engine* engine) {
    if (engine != nullptr) read(*engine);
    return registry_.text();
}

}  // namespace sluice::worker
