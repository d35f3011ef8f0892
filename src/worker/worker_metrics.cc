#include "worker/worker_metrics.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "worker/translation.h"

namespace sluice::worker {
namespace {

void raise(metrics::Counter& counter, std::uint64_t now, std::uint64_t before) {
    if (now > before) counter.add(static_cast<double>(now - before));
}

std::vector<double> ratio_bounds() { return {0.1, 0.25, 0.5, 0.75, 0.9, 1.1, 1.33, 2, 4, 10}; }

double ratio(std::chrono::nanoseconds took, std::chrono::nanoseconds predicted) {
    return static_cast<double>(took.count()) / static_cast<double>(predicted.count());
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
      cached_(registry_.counter("sluice_engine_cached_tokens_total",
                                "Prompt tokens that were not computed", {"source"})),
      cached_tokens_(cached_.with({"pool"})),
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
      kv_tier_bytes_(registry_.gauge("sluice_kv_bytes", "KV blocks held or kept", {"tier"})),
      kv_bytes_(kv_tier_bytes_.with({"pool"})),
      kv_found_(
          registry_.counter("sluice_kv_hits_total", "Blocks of prompts that were found", {"tier"})),
      kv_hits_(kv_found_.with({"pool"})),
      kv_misses_(
          registry_
              .counter("sluice_kv_misses_total", "Blocks of prompts that were not found", {"tier"})
              .with({"pool"})),
      kv_evicted_(registry_.counter("sluice_kv_evictions_total", "Blocks given up", {"cause"})),
      kv_evictions_(kv_evicted_.with({"space"})),
      kv_corrupt_(registry_
                      .counter("sluice_kv_corrupt_total",
                               "Blocks that came from others and failed their checks")
                      .with({})),
      kv_holds_(
          registry_.gauge("sluice_kv_holds", "Prefilled sequences whose blocks wait to be fetched")
              .with({})),
      kv_hold_ends_(registry_.counter("sluice_kv_holds_ended_total",
                                      "Prefilled sequences that wait no longer, by why", {"why"})),
      kv_choices_(registry_.counter(
          "sluice_kv_choices_total",
          "Prompts of which the tier had blocks that the pool lacked, by what was "
          "predicted to be sooner",
          {"tier", "choice"})),
      kv_load_error_(registry_.histogram("sluice_kv_load_time_ratio",
                                         "Time of a load by what was predicted", ratio_bounds(),
                                         {"tier"})),
      kv_compute_error_(registry_
                            .histogram("sluice_kv_compute_time_ratio",
                                       "Time to the first token, without loads, by what was "
                                       "predicted when they had ended",
                                       ratio_bounds())
                            .with({})),
      kv_published_(registry_.counter("sluice_kv_published_total",
                                      "Blocks left in a tier, by what became of them",
                                      {"tier", "result"})),
      kv_not_published_(registry_
                            .counter("sluice_kv_not_published_total",
                                     "Blocks that a tier or the queue before it had no room for")
                            .with({})),
      numerics_violations_(
          registry_
              .counter("sluice_numerics_violations_total",
                       "Blocks with other bits than those under the same name in a tier")
              .with({})),
      tiers_(registry_, kv_tier_bytes_, kv_evicted_, kv_corrupt_) {}

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

WorkerMetrics::PoolReads WorkerMetrics::pool_reads() const {
    return {.hits = static_cast<std::uint64_t>(kv_hits_.value()),
            .misses = static_cast<std::uint64_t>(kv_misses_.value())};
}

void WorkerMetrics::on_fetched(const KvFetch::Fetched& fetched) {
    for (const auto& [source, tokens] : fetched.tokens_by_source) {
        fetched_ += tokens;
        cached_.with({source}).add(static_cast<double>(tokens));
        kv_found_.with({source}).add(
            std::ceil(static_cast<double>(tokens) / engine::Engine::kBlockTokens));
    }
    kv_hits_.add(static_cast<double>(std::ranges::count(fetched.sources, KvFetch::kPool)));
    kv_misses_.add(static_cast<double>(std::ranges::count(fetched.sources, std::string_view())));
    kv_corrupt_.add(static_cast<double>(fetched.corrupt_blocks));
    for (const LoadRecord& load : fetched.loads) {
        kv_choices_.with({load.source, kv::to_string(load.choice)}).add(1);
        // Of a probe the prediction was for all that there is.
        if (load.choice == kv::LoadChoice::kLoad && load.predicted.load.count() > 0)
            kv_load_error_.with({load.source}).observe(ratio(load.took, load.predicted.load));
    }
}

void WorkerMetrics::on_first_token(std::chrono::nanoseconds took,
                                   std::chrono::nanoseconds predicted) {
    if (predicted.count() > 0) kv_compute_error_.observe(ratio(took, predicted));
}

void WorkerMetrics::on_published(const std::string& tier, kvnode::Stored how) {
    constexpr auto kNames =
        std::to_array<std::string_view>({"stored", "was_there", "differs", "failed", "refused"});
    kv_published_.with({tier, kNames.at(static_cast<std::size_t>(how))}).add(1);
    if (how == kvnode::Stored::kDiffers) numerics_violations_.add(1);
}

void WorkerMetrics::on_not_published(std::size_t blocks) {
    kv_not_published_.add(static_cast<double>(blocks));
}

void WorkerMetrics::on_hold_end(KvHolds::End how) {
    constexpr auto kNames = std::to_array<std::string_view>({"released", "time", "stop"});
    kv_hold_ends_.with({kNames[static_cast<std::size_t>(how)]}).add(1);
}

void WorkerMetrics::read(std::span<const engine::Engine* const> engines) {
    engine::EngineStats now;
    std::size_t blocks = 0;
    for (const engine::Engine* engine : engines) {
        const engine::EngineStats each = engine->stats();
        now.running += each.running;
        now.waiting += each.waiting;
        now.cached_tokens += each.cached_tokens;
        now.preemptions += each.preemptions;
        now.evictions += each.evictions;
        blocks += each.blocks_held + each.blocks_kept;
    }
    running_.set(static_cast<double>(now.running));
    waiting_.set(static_cast<double>(now.waiting));
    if (!engines.empty())
        kv_bytes_.set(static_cast<double>(blocks * block_bytes(*engines.front())));
    // A request that was fetched for may wait still: then its tokens come off later.
    const std::uint64_t cached = now.cached_tokens - last_.cached_tokens;
    const std::uint64_t own = cached - std::min(cached, fetched_);
    fetched_ -= cached - own;
    cached_tokens_.add(static_cast<double>(own));
    raise(preemptions_, now.preemptions, last_.preemptions);
    raise(kv_evictions_, now.evictions, last_.evictions);
    last_ = now;
}

std::string WorkerMetrics::text(std::span<const engine::Engine* const> engines, std::size_t holds,
                                KvCache& cache) {
    read(engines);
    tiers_.read(cache);
    kv_holds_.set(static_cast<double>(holds));
    return registry_.text();
}

}  // namespace sluice::worker
