#pragma once

// Metrics of the records (docs/metrics.md), brought up to date when they are asked for.

#include "base/metrics.h"
#include "record/record_store.h"

namespace sluice::gateway {

class RecordProbe {
public:
    explicit RecordProbe(metrics::Registry& registry);

    void update(const record::RecordStats& stats);

private:
    RecordProbe(metrics::Registry& registry, const metrics::Family<metrics::Counter>& joined);

    metrics::Counter written_;
    metrics::Counter joined_ok_;
    metrics::Counter joined_failed_;
    metrics::Counter write_errors_;
    metrics::Counter set_aside_;
    metrics::Gauge waiting_;
    metrics::Gauge journal_;
    record::RecordStats last_;
};

}  // namespace sluice::gateway
