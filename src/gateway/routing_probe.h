#pragma once

// What routing knows and how it came to know it, as metrics; names and labels: docs/metrics.md.

#include <string_view>

#include "base/metrics.h"
#include "gateway/pool_set.h"

namespace sluice::gateway {

class RoutingProbe {
public:
    explicit RoutingProbe(metrics::Registry& registry);

    void stored(std::size_t blocks) { stored_.add(static_cast<double>(blocks)); }
    void removed(std::size_t blocks) { removed_.add(static_cast<double>(blocks)); }
    void cleared() { cleared_.add(); }
    /// A worker's blocks are read from the start: "start", "gap", "refresh".
    void resynced(std::string_view reason) { resyncs_.with({reason}).add(); }
    void matched(std::uint64_t tokens) { matched_.add(static_cast<double>(tokens)); }
    /// What the chosen worker lacks of a prompt, another one has.
    void lent(std::uint64_t tokens) { lent_.add(static_cast<double>(tokens)); }

    /// What is counted when somebody asks.
    void update(const PoolSet& pools);

private:
    metrics::Family<metrics::Counter> events_;
    metrics::Counter stored_;
    metrics::Counter removed_;
    metrics::Counter cleared_;
    metrics::Family<metrics::Counter> resyncs_;
    metrics::Counter matched_;
    metrics::Counter lent_;
    metrics::Gauge blocks_;
    metrics::Gauge bytes_;
    metrics::Family<metrics::Gauge> eventless_;
};

}  // namespace sluice::gateway
