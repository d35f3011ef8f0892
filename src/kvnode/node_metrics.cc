#include "kvnode/node_metrics.h"

#include <fmt/format.h>

namespace sluice::kvnode {

NodeMetrics::NodeMetrics()
    : bytes_(registry_.gauge("sluice_kv_bytes", "What a tier holds", {"tier"})),
      limit_(registry_.gauge("sluice_kv_limit_bytes", "What a tier may take", {"tier"})),
      entries_(registry_.gauge("sluice_kv_entries", "Values in a tier", {"tier"})),
      hits_(registry_.counter("sluice_kv_hits_total", "Reads that a tier answered", {"tier"})),
      misses_(registry_.counter("sluice_kv_misses_total", "Reads that a tier had nothing for",
                                {"tier"})),
      look_ups_(registry_.counter("sluice_kvnode_lookups_total",
                                  "Names that clients asked for by EXISTS and KV.LONGEST",
                                  {"result"})),
      evictions_(registry_.counter("sluice_kv_evictions_total", "What left a tier, by tier and why",
                                   {"cause"})),
      corrupt_(registry_.counter("sluice_kv_corrupt_total",
                                 "Values that failed their checks: refused, or given up")),
      numerics_(registry_.counter("sluice_numerics_violations_total",
                                  "Blocks put under the name of one with another payload")),
      dropped_(registry_.counter("sluice_kv_ssd_dropped_total",
                                 "Values that did not get to the SSD, by why", {"cause"})),
      written_(registry_.counter("sluice_kv_ssd_written_bytes_total",
                                 "Bytes written to the SSD: its wear, by what for", {"kind"})),
      unsynced_(registry_.gauge("sluice_kv_ssd_unsynced_bytes",
                                "Written to the SSD, and lost if the power were cut now")),
      sync_failures_(registry_.counter("sluice_kv_ssd_sync_failures_total",
                                       "Times the SSD did not take for good what was written")),
      clients_(registry_.gauge("sluice_kvnode_clients", "Connections of RESP clients")),
      cut_(registry_.counter("sluice_kvnode_clients_cut_total",
                             "Clients cut for what they sent or did not read")),
      commands_(registry_.counter("sluice_kvnode_commands_total", "Commands of RESP clients")),
      moved_(registry_.counter("sluice_kvnode_bytes_total", "Bytes of values that clients moved",
                               {"direction"})) {}

void NodeMetrics::raise(metrics::Family<metrics::Counter>& family,
                        std::initializer_list<std::string_view> labels, std::uint64_t total) {
    std::string series = fmt::format("{}", static_cast<const void*>(&family));
    for (const std::string_view label : labels) (series += '\n') += label;
    std::uint64_t& last = last_[series];
    if (total > last) family.with(labels).add(static_cast<double>(total - last));
    if (total == 0) family.with(labels).add(0);
    last = total;
}

void NodeMetrics::read_dram(const kv::DramStats& stats) {
    bytes_.with({"dram"}).set(static_cast<double>(stats.bytes));
    limit_.with({"dram"}).set(static_cast<double>(stats.limit));
    entries_.with({"dram"}).set(static_cast<double>(stats.entries));
    raise(hits_, {"dram"}, stats.hits);
    raise(misses_, {"dram"}, stats.misses);
    for (std::size_t i = 0; i < kv::kRemovals; ++i) {
        const std::string cause = "dram_" + std::string(kv::to_string(static_cast<kv::Removal>(i)));
        raise(evictions_, {cause}, stats.removed[i]);
    }
    raise(numerics_, {}, stats.differs);
}

void NodeMetrics::read_ssd(const kv::SsdStats& stats) {
    bytes_.with({"ssd"}).set(static_cast<double>(stats.bytes));
    limit_.with({"ssd"}).set(static_cast<double>(stats.bytes_max));
    entries_.with({"ssd"}).set(static_cast<double>(stats.entries));
    raise(hits_, {"ssd"}, stats.hits);
    raise(misses_, {"ssd"}, stats.misses);
    raise(evictions_, {"ssd_reclaimed"}, stats.reclaimed);
    raise(evictions_, {"ssd_expired"}, stats.expired);
    raise(dropped_, {"queue"}, stats.dropped);
    raise(dropped_, {"size"}, stats.refused);
    raise(dropped_, {"disk"}, stats.write_failures);
    raise(written_, {"values"}, stats.user_bytes);
    raise(written_, {"carried"}, stats.carried_bytes);
    raise(written_, {"all"}, stats.written_bytes);
    unsynced_.with({}).set(static_cast<double>(stats.unsynced_bytes));
    raise(sync_failures_, {}, stats.sync_failures);
}

void NodeMetrics::read_service(const NodeService& service) {
    clients_.with({}).set(static_cast<double>(service.clients.size()));
    raise(cut_, {}, service.clients_cut);
    raise(commands_, {}, service.commands);
    raise(look_ups_, {"found"}, service.found);
    raise(look_ups_, {"missing"}, service.not_found);
    raise(moved_, {"read"}, service.bytes_read);
    raise(moved_, {"written"}, service.bytes_written);
}

std::string NodeMetrics::text(const NodeService& service) {
    const kv::DramStats dram = service.store.dram().stats();
    std::uint64_t corrupt = dram.corrupt + service.store.misnamed() +
                            dram.removed[static_cast<std::size_t>(kv::Removal::kCorrupt)];
    read_dram(dram);
    if (const kv::SsdTier* const ssd = service.store.ssd()) {
        const kv::SsdStats stats = ssd->stats();
        corrupt += stats.corrupt;
        read_ssd(stats);
    }
    raise(corrupt_, {}, corrupt);
    read_service(service);
    return registry_.text();
}

}  // namespace sluice::kvnode
