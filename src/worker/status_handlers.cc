#include "worker/status_handlers.h"

#include <unistd.h>

#include "base/metrics.h"
#include "worker/answers.h"
#include "worker/translation.h"

namespace sluice::worker {
namespace {

port::LoadReport load_of(const Service& service, port::EngineState state) {
    port::LoadReport report{.state = state, .pid = static_cast<std::uint32_t>(::getpid())};
    if (!service.engine) return report;
    const engine::EngineStats stats = service.engine->stats();
    report.running = static_cast<std::uint32_t>(stats.running);
    report.waiting = static_cast<std::uint32_t>(stats.waiting);
    report.computed_tokens = stats.computed_tokens;
    report.kv_used_share = static_cast<float>(stats.blocks_held) / static_cast<float>(stats.blocks);
    return report;
}

}  // namespace

net::HttpResponse handle_health(Service& /*service*/, const net::HttpRequest& /*request*/) {
    return net::HttpResponse::json(200, R"({"status":"ok"})");
}

net::HttpResponse handle_ready(Service& service, const net::HttpRequest& /*request*/) {
    const port::EngineState state = service.state_now();
    const bool ready = state == port::EngineState::kReady;
    net::HttpResponse response =
        net::HttpResponse::json(ready ? 200 : 503, port::to_json(load_of(service, state)));
    if (!ready) response.headers.add("Retry-After", "1");
    return response;
}

net::HttpResponse handle_server_info(Service& service, const net::HttpRequest& /*request*/) {
    if (!service.engine) {
        return error_answer(503, port::kNotReady, "the model is still loading");
    }
    return net::HttpResponse::json(200, port::to_json(describe(*service.engine, service.about)));
}

net::HttpResponse handle_metrics(Service& service, const net::HttpRequest& /*request*/) {
    net::HttpResponse response =
        net::HttpResponse::text(200, service.metrics.text(service.engine.get()));
    response.headers.set("Content-Type", std::string(metrics::Registry::kContentType));
    return response;
}

}  // namespace sluice::worker
