#include "gateway/record_probe.h"

namespace sluice::gateway {
namespace {

void raise(metrics::Counter& counter, std::uint64_t before, std::uint64_t now) {
    counter.add(static_cast<double>(now - before));
}

metrics::Family<metrics::Counter> joined(metrics::Registry& registry) {
    return registry.counter("sluice_records_joined_total",
                            "Rows that only count in another row's weight.", {"result"});
}

}  // namespace

RecordProbe::RecordProbe(metrics::Registry& registry) : RecordProbe(registry, joined(registry)) {}

RecordProbe::RecordProbe(metrics::Registry& registry,
                         const metrics::Family<metrics::Counter>& joined)
    : written_(registry.counter("sluice_records_total", "Rows written.").with({})),
      joined_ok_(joined.with({"ok"})),
      joined_failed_(joined.with({"failed"})),
      write_errors_(registry
                        .counter("sluice_record_write_errors_total",
                                 "Batches of rows that had to be tried again.")
                        .with({})),
      set_aside_(registry
                     .counter("sluice_record_databases_set_aside_total",
                              "Damaged databases that were renamed.")
                     .with({})),
      waiting_(registry.gauge("sluice_records_waiting", "Rows that wait in memory.").with({})),
      journal_(
          registry
              .gauge("sluice_record_journal_bytes", "Rows of failures that wait in the journal.")
              .with({})) {}

void RecordProbe::update(const record::RecordStats& stats) {
    raise(written_, last_.written, stats.written);
    raise(joined_ok_, last_.joined_successes, stats.joined_successes);
    raise(joined_failed_, last_.joined_failures, stats.joined_failures);
    raise(write_errors_, last_.write_errors, stats.write_errors);
    raise(set_aside_, last_.set_aside, stats.set_aside);
    waiting_.set(static_cast<double>(stats.waiting));
    journal_.set(static_cast<double>(stats.journal_bytes));
    last_ = stats;
}

}  // namespace sluice::gateway
