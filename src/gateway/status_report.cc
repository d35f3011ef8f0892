#include "gateway/status_report.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "dispatch/engine_kind.h"

namespace sluice::gateway {
namespace {

namespace json = boost::json;

json::value versions_json(const port::ServerInfo* info) {
    if (info == nullptr) return nullptr;
    return {{"engine", info->engine},           {"model", info->model},
            {"fingerprint", info->fingerprint}, {"numerics_id", info->numerics_id},
            {"version", info->version},         {"commit", info->commit},
            {"build_flags", info->build_flags}};
}

json::object worker_object(const WorkerView& worker) {
    json::object object{
        {"name", worker.name},      {"url", worker.url},
        {"pid", nullptr},           {"phase", worker.phase},
        {"state", worker.state},    {"running", nullptr},
        {"waiting", nullptr},       {"kv_used_share", nullptr},
        {"report_age_ms", nullptr}, {"versions", versions_json(worker.versions.get())}};
    if (worker.leases) object["leases"] = *worker.leases;
    if (worker.events) object["kv_events"] = *worker.events;
    if (worker.report_age) object["report_age_ms"] = worker.report_age->count();
    if (!worker.reason.empty()) object["reason"] = worker.reason;
    if (!worker.report) return object;
    if (worker.report->pid != 0) object["pid"] = worker.report->pid;
    object["running"] = worker.report->running;
    object["waiting"] = worker.report->waiting;
    object["kv_used_share"] = worker.report->kv_used_share;
    return object;
}

json::object resume_json(const Pool& pool) {
    const dispatch::EngineKind& kind = dispatch::engine_kind(pool.engine());
    return {{"kind", dispatch::to_string(kind.resume)}, {"why", kind.why}};
}

}  // namespace

std::string pools_json(const PoolSet& pools) {
    json::array rows;
    for (const auto& pool : pools) {
        json::array workers;
        for (const WorkerView& worker : pool->workers()) workers.push_back(worker_object(worker));
        rows.push_back(
            json::object{{"name", pool->name()},
                         {"engine", pool->engine()},
                         {"resume", resume_json(*pool)},
                         {"ready", pools.any_ready(*pool)},
                         {"dispatched_total", pools.registry().dispatched(pool->index())},
                         {"workers", std::move(workers)}});
    }
    return json::serialize(rows);
}

std::string worker_json(const WorkerView& worker) { return json::serialize(worker_object(worker)); }

std::string status_json(const Pool& stable, const PoolSet& pools) {
    return fmt::format(R"({{"plan":{},"pools":{}}})",
                       json::serialize(json::object{{"stable", stable.name()}}), pools_json(pools));
}

}  // namespace sluice::gateway
