#pragma once

// What Prometheus is told of a cache node; read when somebody asks.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "kvnode/node_service.h"

namespace sluice::kvnode {

class NodeMetrics {
public:
    NodeMetrics();

    [[nodiscard]] std::string text(const NodeService& service);

private:
    void read_dram(const kv::DramStats& stats);
    void read_ssd(const kv::SsdStats& stats);
    void read_service(const NodeService& service);
    /// Adds what `total` has grown by since the last time.
    void raise(metrics::Family<metrics::Counter>& family,
               std::initializer_list<std::string_view> labels, std::uint64_t total);

    metrics::Registry registry_;
    metrics::Family<metrics::Gauge> bytes_;
    metrics::Family<metrics::Gauge> limit_;
    metrics::Family<metrics::Gauge> entries_;
    metrics::Family<metrics::Counter> hits_;
    metrics::Family<metrics::Counter> misses_;
    metrics::Family<metrics::Counter> look_ups_;
    metrics::Family<metrics::Counter> evictions_;
    metrics::Family<metrics::Counter> corrupt_;
    metrics::Family<metrics::Counter> numerics_;
    metrics::Family<metrics::Counter> dropped_;
    metrics::Family<metrics::Counter> written_;
    metrics::Family<metrics::Gauge> unsynced_;
    metrics::Family<metrics::Counter> sync_failures_;
    metrics::Family<metrics::Gauge> clients_;
    metrics::Family<metrics::Counter> cut_;
    metrics::Family<metrics::Counter> commands_;
    metrics::Family<metrics::Counter> moved_;
    std::map<std::string, std::uint64_t> last_;  ///< By family and labels; a few dozen.
};

}  // namespace sluice::kvnode
