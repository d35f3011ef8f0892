#include "gateway/routing_probe.h"

#include <algorithm>

namespace sluice::gateway {

RoutingProbe::RoutingProbe(metrics::Registry& registry)
    : events_(registry.counter("sluice_kv_events_total",
                               "Blocks of which workers said that they have them or no more.",
                               {"type"})),
      stored_(events_.with({"stored"})),
      removed_(events_.with({"removed"})),
      cleared_(events_.with({"cleared"})),
      resyncs_(registry.counter("sluice_kv_resyncs_total",
                                "Times a worker's blocks were read from the start.", {"reason"})),
      matched_(registry
                   .counter("sluice_matched_tokens_total",
                            "Prompt tokens that the chosen worker was expected to have.")
                   .with({})),
      lent_(registry
                .counter(
                    "sluice_lent_tokens_total",
                    "Prompt tokens for which the chosen worker was told of another that has them.")
                .with({})),
      blocks_(registry.gauge("sluice_prefix_index_blocks", "Blocks in the prefix index.").with({})),
      bytes_(registry.gauge("sluice_prefix_index_bytes", "Memory of the prefix index.").with({})),
      eventless_(registry.gauge("sluice_workers_without_events",
                                "Ready workers that don't say what their caches hold.", {"pool"})) {
}

void RoutingProbe::update(const PoolSet& pools) {
    const routing::PrefixIndex& index = pools.registry().index();
    blocks_.set(static_cast<double>(index.blocks()));
    bytes_.set(static_cast<double>(index.memory_bytes()));
    for (const auto& pool : pools) {
        const auto workers = pool->workers();
        const auto without = std::ranges::count_if(workers, [](const WorkerView& worker) {
            return worker.state == "ready" && worker.events == false;
        });
        eventless_.with({pool->name()}).set(static_cast<double>(without));
    }
}

}  // namespace sluice::gateway
