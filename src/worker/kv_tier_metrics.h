#pragma once

// What Prometheus is told of the tiers outside of the pool; read when somebody asks.

#include <cstdint>
#include <map>
#include <string>

#include "base/metrics.h"
#include "worker/kv_cache.h"

namespace sluice::worker {

class KvTierMetrics {
public:
    /// `bytes` has the label tier, `evictions` the label cause: the pool's are there, too; `corrupt`
    /// counts what other workers sent damaged as well.
    KvTierMetrics(metrics::Registry& registry, metrics::Family<metrics::Gauge> bytes,
                  metrics::Family<metrics::Counter> evictions, metrics::Counter corrupt);

    void read(KvCache& cache);

private:
    void read_memory(const kv::DramTier& tier);
    void read_store(const kvnode::StoreStats& stats);
    /// Adds what `total` has grown by since the last time, and returns it.
    double raise(metrics::Family<metrics::Counter>& family,
                 std::initializer_list<std::string_view> labels, std::uint64_t total);

    metrics::Family<metrics::Gauge> bytes_;
    metrics::Family<metrics::Counter> evictions_;
    metrics::Counter corrupt_;
    metrics::Family<metrics::Gauge> limit_;
    metrics::Family<metrics::Gauge> up_;
    metrics::Family<metrics::Counter> requests_;
    metrics::Family<metrics::Counter> moved_bytes_;
    metrics::Family<metrics::Gauge> round_trip_;
    std::map<std::string, std::uint64_t>
        last_;  ///< By series; as many as there are stores and causes.
};

}  // namespace sluice::worker
