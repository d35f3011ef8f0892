#include "tests/support/scripted_upstream.h"

#include <algorithm>
#include <utility>

namespace sluice {

ScriptedUpstream::ScriptedUpstream(net::EventLoop& loop, std::vector<Script> scripts,
                                   std::shared_ptr<net::TlsIdentity> tls)
    : loop_(loop), secure_(tls != nullptr), scripts_(std::move(scripts)) {
    net::HttpServerOptions options;
    options.tls = std::move(tls);
    server_ = *net::HttpServer::listen(loop, options, [this](const Exchange& e) { serve(e); });
}

std::string ScriptedUpstream::url() const {
    return std::string(secure_ ? "https" : "http") +
           "://127.0.0.1:" + std::to_string(server_->port()) + "/v1";
}

void ScriptedUpstream::serve(const Exchange& exchange) {
    const std::string& path = exchange->request().path;
    if (path == "/v1/models" || path == "/health") {
        ++probes;
        const int status = path == "/health" ? health_status : models_status;
        return exchange->respond(net::HttpResponse::json(status, R"({"object":"list","data":[]})"));
    }
    requests.push_back(exchange->request());
    exchanges.push_back(exchange);
    exchange->on_client_gone([this] { ++gone; });
    scripts_[std::min(requests.size(), scripts_.size()) - 1](*this, exchange);
}

ScriptedUpstream::Script ScriptedUpstream::streams(std::vector<std::string> pieces, End end) {
    auto shared = std::make_shared<std::vector<std::string>>(std::move(pieces));
    return [shared, end](ScriptedUpstream& upstream, const Exchange& exchange) {
        exchange->begin_stream(200, {{"Content-Type", "text/event-stream"}});
        upstream.send_next(exchange, shared, 0, end);
    };
}

void ScriptedUpstream::send_next(const Exchange& exchange,
                                 std::shared_ptr<std::vector<std::string>> pieces, std::size_t next,
                                 End end) {
    if (next < pieces->size()) {
        exchange->write((*pieces)[next]);
        return loop_.post([this, alive = std::weak_ptr(alive_), exchange, pieces, next, end] {
            if (!alive.expired()) send_next(exchange, pieces, next + 1, end);
        });
    }
    if (end == End::kProper) exchange->end_stream();
    if (end == End::kCut) exchange->abort();
}

ScriptedUpstream::Script ScriptedUpstream::streams_in_steps(const std::string& stream,
                                                            std::size_t step) {
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < stream.size(); at += step)
        pieces.push_back(stream.substr(at, step));
    return streams(std::move(pieces));
}

ScriptedUpstream::Script ScriptedUpstream::answers(int status, std::string body,
                                                   net::HttpHeaders headers) {
    return [status, body, headers](ScriptedUpstream&, const Exchange& exchange) {
        net::HttpResponse response = net::HttpResponse::json(status, body);
        for (const auto& [name, value] : headers) response.headers.set(name, value);
        exchange->respond(std::move(response));
    };
}

ScriptedUpstream::Script ScriptedUpstream::hangs() {
    return [](ScriptedUpstream&, const Exchange&) {};
}

ScriptedUpstream::Script ScriptedUpstream::hangs_up() {
    return [](ScriptedUpstream&, const Exchange& exchange) { exchange->abort(); };
}

std::string chat_event(const std::string& delta, const std::string& finish_reason) {
    const std::string finish = finish_reason.empty() ? "null" : '"' + finish_reason + '"';
    return R"(data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":)" +
           delta + R"(,"finish_reason":)" + finish + "}]}\n\n";
}

}  // namespace sluice
