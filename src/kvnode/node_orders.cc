#include "kvnode/node_orders.h"

#include <utility>

#include "kvnode/dram_status.h"
#include "kvnode/node_answers.h"
#include "port/kv_orders.h"
#include "port/kv_status.h"
#include "port/port_error.h"

namespace sluice::kvnode {
namespace {

net::HttpResponse wrong(const Error& error) {
    return error_answer(400, port::kInvalidRequest, error.message(), error.place());
}

void respond(net::HttpExchange& exchange, const port::KvOrderResult& result) {
    exchange.respond(net::HttpResponse::json(200, port::to_json(result)));
}

port::KvTierStatus ssd_status(const kv::SsdStats& stats) {
    return {.tier = "ssd",
            .bytes = stats.bytes,
            .limit_bytes = stats.bytes_max,
            .entries = stats.entries,
            .hits = stats.hits,
            .misses = stats.misses,
            .corrupt = stats.corrupt,
            .evictions = {{"reclaimed", stats.reclaimed}, {"expired", stats.expired}},
            .counters = {{"stored", stats.stored},
                         {"dropped", stats.dropped},
                         {"refused", stats.refused},
                         {"written_bytes", stats.written_bytes},
                         {"carried_bytes", stats.carried_bytes},
                         {"queue_bytes", stats.queue_bytes},
                         {"read_errors", stats.read_errors},
                         {"write_failures", stats.write_failures}}};
}

/// One order to pin; what only the SSD has comes to memory first.
struct Pinning {
    Exchange exchange;
    port::KvOrderResult result;
    std::size_t missing = 0;

    void take(bool pinned) {
        ++(pinned ? result.done : result.failed);
        if (--missing == 0) respond(*exchange, result);
    }
};

}  // namespace

void answer_kv_status(NodeService& service, const Exchange& exchange) {
    const kv::DramStats dram = service.store.dram().stats();
    port::KvStatus status;
    status.pinned = dram.pinned;
    status.tiers.push_back(dram_status(dram));
    const kv::SsdTier* const ssd = service.store.ssd();
    if (ssd == nullptr)
        return exchange->respond(net::HttpResponse::json(200, port::to_json(status)));
    status.tiers.push_back(ssd_status(ssd->stats()));
    service.store.ssd_holdings([exchange, status](std::vector<port::KvHolding> holdings) mutable {
        status.tiers.back().holdings = std::move(holdings);
        exchange->respond(net::HttpResponse::json(200, port::to_json(status)));
    });
}

void answer_kv_drop(NodeService& service, const Exchange& exchange) {
    const auto order = port::parse_kv_drop_order(exchange->request().body);
    if (!order) return exchange->respond(wrong(order.error()));
    if (order->name) {
        const bool there = service.store.erase(*order->name, wall_now());
        return respond(*exchange, {.done = there ? 1ULL : 0ULL});
    }
    service.store.erase_if(order->tenant, order->retention, [exchange](std::uint64_t erased) {
        respond(*exchange, {.done = erased});
    });
}

void answer_kv_bounds(NodeService& service, const Exchange& exchange) {
    const auto order = port::parse_kv_bounds_order(exchange->request().body);
    if (!order) return exchange->respond(wrong(order.error()));
    service.store.bound_tenants({order->tenants.begin(), order->tenants.end()});
    exchange->respond(net::HttpResponse::json(200, "{}"));
}

void answer_kv_pin(NodeService& service, const Exchange& exchange) {
    const auto order = port::parse_kv_pin_order(exchange->request().body);
    if (!order) return exchange->respond(wrong(order.error()));
    if (order->names.empty()) return respond(*exchange, {});
    const kv::WallTime now = wall_now();
    const kv::WallTime until = now + std::chrono::seconds(order->seconds);
    const auto pinning = std::make_shared<Pinning>(
        Pinning{.exchange = exchange, .result = {}, .missing = order->names.size()});
    for (const std::string& name : order->names) {
        const auto pinned =
            service.store.pin(name, until, now, [pinning](bool done) { pinning->take(done); });
        if (pinned) pinning->take(*pinned);
    }
}

void answer_kv_verify(NodeService& service, const Exchange& exchange) {
    const bool taken = service.store.verify([exchange](const NodeStore::Checked& checked) {
        respond(*exchange,
                {.done = checked.whole, .bytes = checked.bytes, .failed = checked.damaged});
    });
    if (!taken) {
        exchange->respond(
            error_answer(503, port::kNotReady, "everything is being read again already"));
    }
}

}  // namespace sluice::kvnode
