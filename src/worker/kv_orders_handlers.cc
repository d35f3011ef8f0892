#include "worker/kv_orders_handlers.h"

#include <chrono>
#include <utility>
#include <vector>

#include "kv/block_name.h"
#include "kv/block_value.h"
#include "kvnode/dram_status.h"
#include "port/kv_orders.h"
#include "port/kv_status.h"
#include "worker/answers.h"
#include "worker/translation.h"

namespace sluice::worker {
namespace {

kv::WallTime wall_now() { return std::chrono::system_clock::now(); }

net::HttpResponse wrong(const Error& error) {
    return error_answer(400, port::kInvalidRequest, error.message(), error.place());
}

port::KvTierStatus pool_status(const Service& service) {
    const WorkerMetrics::PoolReads reads = service.metrics.pool_reads();
    port::KvTierStatus pool{.tier = "pool", .hits = reads.hits, .misses = reads.misses};
    for (const auto& rank : service.ranks) {
        const engine::EngineStats stats = rank->engine->stats();
        const std::uint64_t each = block_bytes(*rank->engine);
        pool.entries += stats.blocks_held + stats.blocks_kept;
        pool.bytes += (stats.blocks_held + stats.blocks_kept) * each;
        pool.limit_bytes += stats.blocks * each;
        pool.evictions["space"] += stats.evictions;
    }
    return pool;
}

/// One order to drop, until memory and the pools of all ranks have done it.
struct Dropping {
    std::shared_ptr<net::HttpExchange> exchange;
    port::KvOrderResult result;
    std::size_t missing = 0;

    void add(const port::KvOrderResult& part) {
        result.done += part.done;
        result.bytes += part.bytes;
        if (--missing == 0) exchange->respond(net::HttpResponse::json(200, port::to_json(result)));
    }
};

port::KvOrderResult drop_from_memory(kv::DramTier* dram, const port::KvDropOrder& order) {
    if (dram == nullptr) return {};
    const std::size_t before = dram->bytes();
    const std::size_t dropped = order.name ? static_cast<std::size_t>(dram->erase(*order.name))
                                           : dram->erase_if(order.tenant, order.retention);
    return {.done = dropped, .bytes = before - std::min(before, dram->bytes())};
}

/// What an order means to a pool, which knows keys and owners, and no names.
class PoolOrder {
public:
    explicit PoolOrder(const port::KvDropOrder& order) : retention_(order.retention) {
        if (order.tenant) tenant_ = engine::tenant_hash(*order.tenant);
        if (order.name) block_ = kv::parse_block_name(*order.name);
        nothing_ = order.name && !block_;
    }

    [[nodiscard]] bool fits(const kv::BlockKey& key, const engine::BlockOwner& owner) const {
        if (nothing_ || (block_ && block_->key != key)) return false;
        return (!tenant_ || *tenant_ == owner.tenant) &&
               (!retention_ || *retention_ == owner.retention);
    }

private:
    std::optional<std::uint64_t> tenant_;
    std::optional<Retention> retention_;
    std::optional<kv::BlockName> block_;
    bool nothing_ = false;  ///< A name that is no block's.
};

void drop_from_pool(net::EventLoop& loop, engine::Engine& engine, const PoolOrder& order,
                    std::shared_ptr<Dropping> dropping) {
    engine.with_blocks([&loop, order, each = block_bytes(engine),
                        dropping = std::move(dropping)](engine::BlockDesk& desk) mutable {
        const std::uint64_t dropped =
            desk.forget_kept([&](const kv::BlockKey& key, const engine::BlockOwner& owner) {
                return order.fits(key, owner);
            });
        // The exchange belongs to the loop: this thread must not be the one that lets go of it.
        loop.post([dropping = std::move(dropping), dropped, each] {
            dropping->add({.done = dropped, .bytes = dropped * each});
        });
    });
}

port::KvStoreStatus store_status(const kvnode::StoreStats& stats) {
    return {.url = stats.where,
            .kind = stats.where.starts_with("dir:") ? "directory" : "",
            .reachable = stats.up,
            .counters = {{"hits", stats.hits},
                         {"misses", stats.misses},
                         {"stored", stats.stored},
                         {"pulled", stats.pulled},
                         {"bytes_read", stats.bytes_read},
                         {"bytes_written", stats.bytes_written},
                         {"corrupt", stats.corrupt},
                         {"differs", stats.differs},
                         {"timeouts", stats.timeouts},
                         {"errors", stats.errors},
                         {"refused", stats.refused}}};
}

}  // namespace

net::HttpResponse handle_kv_status(Service& service, const net::HttpRequest& /*request*/) {
    port::KvStatus status{.epoch = service.kv.cache.nodes_epoch()};
    status.tiers.push_back(pool_status(service));
    if (const kv::DramTier* const dram = service.kv.cache.dram()) {
        const kv::DramStats stats = dram->stats();
        status.tiers.push_back(kvnode::dram_status(stats));
        status.pinned = stats.pinned;
    }
    for (const auto& tier : service.kv.cache.tiers().all) {
        if (tier->name == "dram") continue;
        for (const kvnode::StoreStats& stats : tier->store->stats())
            status.stores.push_back(store_status(stats));
    }
    return net::HttpResponse::json(200, port::to_json(status));
}

void handle_kv_drop(Service& service, const std::shared_ptr<net::HttpExchange>& exchange) {
    const auto order = port::parse_kv_drop_order(exchange->request().body);
    if (!order) return exchange->respond(wrong(order.error()));
    const auto dropping = std::make_shared<Dropping>(
        Dropping{.exchange = exchange, .result = {}, .missing = service.ranks.size() + 1});
    for (const auto& rank : service.ranks)
        drop_from_pool(service.loop, *rank->engine, PoolOrder(*order), dropping);
    dropping->add(drop_from_memory(service.kv.cache.dram(), *order));
}

net::HttpResponse handle_kv_pin(Service& service, const net::HttpRequest& request) {
    const auto order = port::parse_kv_pin_order(request.body);
    if (!order) return wrong(order.error());
    port::KvOrderResult result;
    kv::DramTier* const dram = service.kv.cache.dram();
    const kv::WallTime now = wall_now();
    for (const std::string& name : order->names) {
        const bool pinned =
            dram != nullptr && dram->pin(name, now + std::chrono::seconds(order->seconds), now);
        ++(pinned ? result.done : result.failed);
    }
    return net::HttpResponse::json(200, port::to_json(result));
}

net::HttpResponse handle_kv_bounds(Service& service, const net::HttpRequest& request) {
    auto order = port::parse_kv_bounds_order(request.body);
    if (!order) return wrong(order.error());
    if (kv::DramTier* const dram = service.kv.cache.dram())
        dram->bound_tenants({order->tenants.begin(), order->tenants.end()});
    return net::HttpResponse::json(200, "{}");
}

net::HttpResponse handle_kv_nodes(Service& service, const net::HttpRequest& request) {
    const auto order = port::parse_kv_nodes_order(request.body);
    if (!order) return wrong(order.error());
    if (const auto set = service.kv.cache.set_nodes(order->epoch, order->nodes); !set) {
        const bool old = set.error().code() == ErrorCode::kOutOfRange;
        return error_answer(old ? 409 : 400, port::kInvalidRequest, set.error().message(),
                            set.error().place());
    }
    service.publisher.forget_known();
    return net::HttpResponse::json(200, "{}");
}

void handle_kv_verify(Service& service, const std::shared_ptr<net::HttpExchange>& exchange) {
    kv::DramTier* const dram = service.kv.cache.dram();
    if (dram == nullptr)
        return exchange->respond(
            net::HttpResponse::json(200, port::to_json(port::KvOrderResult{})));
    const bool taken =
        service.kv.cache.tasks().submit([dram, loop = &service.loop, exchange]() mutable {
            port::KvOrderResult result;
            std::vector<std::string> damaged;
            dram->for_each(wall_now(), [&](const kv::DramTier::Item& item) {
                const auto block = kv::decode_block(item.value.bytes);
                const bool whole = block && item.block && block->header.key == item.block->key;
                ++(whole ? result.done : result.failed);
                result.bytes += item.value.bytes.size();
                if (!whole) damaged.emplace_back(item.name);
            });
            for (const std::string& name : damaged) dram->erase(name, kv::Removal::kCorrupt);
            // The exchange belongs to the loop: this thread must not be the one that lets go of it.
            loop->post([exchange = std::move(exchange), result] {
                exchange->respond(net::HttpResponse::json(200, port::to_json(result)));
            });
        });
    if (!taken)
        exchange->respond(error_answer(503, port::kNotReady, "too much waits to be read already"));
}

}  // namespace sluice::worker
