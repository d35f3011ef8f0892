#include "gateway/status_report.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace sluice::gateway {
namespace {

namespace json = boost::json;

json::value versions_json(const port::ServerInfo& info) {
    if (info.fingerprint.empty()) return nullptr;
    return {{"engine", info.engine},           {"model", info.model},
            {"fingerprint", info.fingerprint}, {"numerics_id", info.numerics_id},
            {"version", info.version},         {"commit", info.commit},
            {"build_flags", info.build_flags}};
}

json::object worker_json(std::string name, const WorkerSet::View& worker) {
    json::object object{{"name", std::move(name)},
                        {"url", worker.url},
                        {"pid", nullptr},
                        {"phase", "full"},
                        {"state", worker.reachable ? port::to_string(worker.report.state) : "lost"},
                        {"running", nullptr},
                        {"waiting", nullptr},
                        {"kv_used_share", nullptr},
                        {"report_age_ms", nullptr},
                        {"versions", versions_json(worker.info)}};
    if (!worker.report_age) return object;
    if (worker.report.pid != 0) object["pid"] = worker.report.pid;
    object["running"] = worker.report.running;
    object["waiting"] = worker.report.waiting;
    object["kv_used_share"] = worker.report.kv_used_share;
    object["report_age_ms"] = worker.report_age->count();
    return object;
}

}  // namespace

std::string status_json(const std::string& pool, const WorkerSet& workers) {
    json::array list;
    for (WorkerIndex index = 0; index < workers.size(); ++index)
        list.push_back(worker_json(fmt::format("{}-{}", pool, index), workers.view(index)));
    json::object row{{"name", pool},
                     {"engine", "native"},
                     {"ready", workers.any_ready()},
                     {"dispatched_total", workers.dispatched()},
                     {"workers", std::move(list)}};
    return json::serialize(
        json::object{{"plan", {{"stable", pool}}}, {"pools", json::array{std::move(row)}}});
}

}  // namespace sluice::gateway
