#include "worker/kv_tier_metrics.h"

#include <utility>

namespace sluice::worker {

KvTierMetrics::KvTierMetrics(metrics::Registry& registry, metrics::Family<metrics::Gauge> bytes,
                             metrics::Family<metrics::Counter> evictions, metrics::Counter corrupt)
    : bytes_(std::move(bytes)),
      evictions_(std::move(evictions)),
      corrupt_(corrupt),
      limit_(registry.gauge("sluice_kv_limit_bytes", "What a tier may take", {"tier"})),
      up_(registry.gauge("sluice_kv_store_up", "Whether a node or directory answers", {"store"})),
      requests_(registry.counter("sluice_kv_store_blocks_total",
                                 "Blocks asked of, and left in, a node or directory, by result",
                                 {"store", "result"})),
      moved_bytes_(
          registry.counter("sluice_kv_store_bytes_total",
                           "Bytes of blocks read from, and written to, a node or directory",
                           {"store", "direction"})),
      round_trip_(registry.gauge("sluice_kv_store_round_trip_seconds",
                                 "Of look-ups, averaged over the last ones", {"store"})) {}

double KvTierMetrics::raise(metrics::Family<metrics::Counter>& family,
                            std::initializer_list<std::string_view> labels, std::uint64_t total) {
    std::string series;
    for (const std::string_view label : labels) (series += label) += '\n';
    std::uint64_t& last = last_[series];
    // A store that came back under its name counts from 0.
    if (total < last) last = 0;
    const auto grown = static_cast<double>(total - last);
    if (grown > 0) family.with(labels).add(grown);
    last = total;
    return grown;
}

void KvTierMetrics::read_memory(const kv::DramTier& tier) {
    const kv::DramStats stats = tier.stats();
    bytes_.with({"dram"}).set(static_cast<double>(stats.bytes));
    limit_.with({"dram"}).set(static_cast<double>(stats.limit));
    for (std::size_t i = 0; i < kv::kRemovals; ++i) {
        const auto why = static_cast<kv::Removal>(i);
        const std::string cause = "dram_" + std::string(kv::to_string(why));
        const double more = raise(evictions_, {cause}, stats.removed[i]);
        if (why == kv::Removal::kCorrupt) corrupt_.add(more);
    }
}

void KvTierMetrics::read_store(const kvnode::StoreStats& stats) {
    const std::string_view store = stats.where;
    up_.with({store}).set(stats.up ? 1 : 0);
    round_trip_.with({store}).set(std::chrono::duration<double>(stats.round_trip).count());
    raise(requests_, {store, "hit"}, stats.hits);
    raise(requests_, {store, "miss"}, stats.misses);
    raise(requests_, {store, "stored"}, stats.stored);
    raise(requests_, {store, "pulled"}, stats.pulled);
    corrupt_.add(raise(requests_, {store, "corrupt"}, stats.corrupt));
    raise(requests_, {store, "differs"}, stats.differs);
    raise(requests_, {store, "timeout"}, stats.timeouts);
    raise(requests_, {store, "error"}, stats.errors);
    raise(requests_, {store, "refused"}, stats.refused);
    raise(moved_bytes_, {store, "read"}, stats.bytes_read);
    raise(moved_bytes_, {store, "written"}, stats.bytes_written);
}

void KvTierMetrics::read(KvCache& cache) {
    if (const kv::DramTier* const dram = cache.dram()) read_memory(*dram);
    for (const auto& tier : cache.tiers().all) {
        if (tier->name == "dram") continue;
        for (const kvnode::StoreStats& stats : tier->store->stats()) read_store(stats);
    }
}

}  // namespace sluice::worker
