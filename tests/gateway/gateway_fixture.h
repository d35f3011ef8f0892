#pragma once

// The gateway over real sockets, in front of workers that do what a test tells them to.

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>

#include "gateway/gateway.h"
#include "gateway/model_vocabulary.h"
#include "net/sse.h"
#include "port/generate.h"
#include "port/load_report.h"
#include "port/port_error.h"
#include "tests/gateway/fake_kv_events.h"

namespace sluice::gateway {

namespace json = boost::json;

inline const text::Tokenizer& krill() {
    static const text::Tokenizer tokenizer = *load_tokenizer(*find_model("krill"));
    return tokenizer;
}

inline std::vector<TokenId> ids(std::string_view text) { return krill().encode_with_control(text); }

/// An engine's port whose answers a test writes.
class FakeWorker {
public:
    using Script = std::function<void(const port::GenerateRequest&, net::HttpExchange&)>;

    FakeWorker(net::EventLoop& loop, std::vector<Script> scripts) : scripts_(std::move(scripts)) {
        info.model = "Krill";
        info.fingerprint = "f";
        info.numerics_id = "n";
        info.context_length = 1000;
        info.vocabulary = 4096;
        server_ = *net::HttpServer::listen(
            loop, {}, [this](std::shared_ptr<net::HttpExchange> exchange) { serve(exchange); });
    }

    [[nodiscard]] std::string url() const {
        return "http://127.0.0.1:" + std::to_string(server_->port());
    }

    void set_scripts(std::vector<Script> scripts) { scripts_ = std::move(scripts); }

    port::ServerInfo info;
    FakeKvEvents kv_events;  ///< Asked for if `info` names components.
    bool ready = true;
    bool answers = true;
    std::uint32_t pid = 100;
    std::uint64_t kv_epoch = 0;
    std::size_t looks = 0;  ///< At its state.
    /// Answers what is asked of its cache: /kv/status and the like.
    std::function<void(net::HttpExchange&)> on_kv;
    std::vector<port::GenerateRequest> requests;
    std::vector<std::shared_ptr<net::HttpExchange>> exchanges;
    std::size_t gone = 0;               ///< Requests whose connection the gateway closed early.
    std::vector<std::string> released;  ///< Holds that it was told to let go of.

private:
    void serve(const std::shared_ptr<net::HttpExchange>& exchange) {
        const std::string& path = exchange->request().path;
        if (!answers) return exchange->abort();
        if (path == "/ready") {
            ++looks;
            return exchange->respond(net::HttpResponse::json(
                ready ? 200 : 503,
                to_json(port::LoadReport{
                    .state = ready ? port::EngineState::kReady : port::EngineState::kLoading,
                    .pid = pid,
                    .kv_epoch = kv_epoch})));
        }
        if (path == "/server_info")
            return exchange->respond(net::HttpResponse::json(200, to_json(info)));
        if (path == "/kv/release") {
            const json::value body = json::parse(exchange->request().body);
            released.push_back(json::value_to<std::string>(body.at("hold")));
            return exchange->respond(net::HttpResponse::json(200, "{}"));
        }
        if (path.starts_with("/kv/") && on_kv) return on_kv(*exchange);
        if (path == "/kv/bounds") return exchange->respond(net::HttpResponse::json(200, "{}"));
        if (path == "/kv_events") return kv_events.answer(exchange);
        requests.push_back(*port::parse_generate_request(exchange->request().body));
        exchanges.push_back(exchange);
        exchange->on_client_gone([this] { ++gone; });
        const std::size_t turn = std::min(requests.size(), scripts_.size()) - 1;
        scripts_[turn](requests.back(), *exchange);
    }

    std::vector<Script> scripts_;
    std::unique_ptr<net::HttpServer> server_;
};

inline void send_frame(net::HttpExchange& exchange, port::GenerateFrame frame) {
    frame.rid = port::parse_generate_request(exchange.request().body)->rid;
    exchange.write(net::sse_event(to_json(frame)));
}

inline port::GenerateFrame tokens(std::vector<TokenId> output) {
    port::GenerateFrame frame;
    frame.output_ids = std::move(output);
    frame.prompt_tokens = 5;
    return frame;
}

inline void begin(net::HttpExchange& exchange) {
    exchange.begin_stream(200, {{"Content-Type", "text/event-stream"}});
}

inline void end_with(net::HttpExchange& exchange, port::FinishType type) {
    port::GenerateFrame last = tokens({});
    last.finish_reason = {.type = type, .matched = {}, .message = "as told"};
    send_frame(exchange, last);
    exchange.write(net::sse_event("[DONE]"));
    exchange.end_stream();
}

/// Answers with `text` and stops.
inline FakeWorker::Script says(std::string text) {
    return [text](const port::GenerateRequest& request, net::HttpExchange& exchange) {
        begin(exchange);
        std::vector<TokenId> all = ids(text);
        all.erase(all.begin(),
                  all.begin() + static_cast<std::ptrdiff_t>(request.resume_output_ids.size()));
        send_frame(exchange, tokens(all));
        end_with(exchange, port::FinishType::kStop);
    };
}

/// Asked to prefill, says the first token that is missing of `text`, and holds what it computed.
inline FakeWorker::Script prefills(std::string text) {
    return [text](const port::GenerateRequest& request, net::HttpExchange& exchange) {
        if (request.phase != port::Phase::kPrefill) return says(text)(request, exchange);
        begin(exchange);
        port::GenerateFrame last = tokens({ids(text)[request.resume_output_ids.size()]});
        last.kv = port::KvHandover{
            .source = {.url = {}, .hold = request.rid, .keys = {}, .tail_tokens = 5},
            .hold_until_ms = 30'000};
        send_frame(exchange, last);
        exchange.write(net::sse_event("[DONE]"));
        exchange.end_stream();
    };
}

/// It can't have the blocks that it was to start from.
inline FakeWorker::Script misses_blocks() {
    return [](const port::GenerateRequest&, net::HttpExchange& exchange) {
        exchange.respond(net::HttpResponse::json(
            503, to_json(port::PortError{.message = "the blocks are gone",
                                         .code = std::string(port::kKvUnavailable),
                                         .param = {}})));
    };
}

/// Says what is missing of the first `count` tokens of `text` and dies.
inline FakeWorker::Script dies_after(std::string text, std::size_t count) {
    return [text, count](const port::GenerateRequest& request, net::HttpExchange& exchange) {
        begin(exchange);
        std::vector<TokenId> all = ids(text);
        all.resize(count);
        for (std::size_t i = request.resume_output_ids.size(); i < count; ++i)
            send_frame(exchange, tokens({all[i]}));
        exchange.abort();
    };
}

/// Says the first token and then nothing, for as long as the connection lives.
inline FakeWorker::Script hangs(std::string text) {
    return [text](const port::GenerateRequest&, net::HttpExchange& exchange) {
        begin(exchange);
        send_frame(exchange, tokens({ids(text).front()}));
    };
}

struct Reply {
    int status = 0;
    net::HttpHeaders headers;
    std::string body;
    bool done = false;
    bool cut = false;

    [[nodiscard]] std::vector<std::string> events() const {
        std::vector<std::string> data;
        net::SseParser parser;
        EXPECT_TRUE(parser.feed(body, [&](const auto& event) { data.push_back(event.data); }));
        return data;
    }
    [[nodiscard]] json::value json() const { return json::parse(body); }
    /// The text of all content deltas.
    [[nodiscard]] std::string content() const {
        std::string text;
        for (const std::string& event : events()) {
            if (event == "[DONE]") continue;
            const json::value value = json::parse(event);
            const auto* choices = value.as_object().if_contains("choices");
            if (choices == nullptr || choices->as_array().empty()) continue;
            if (const auto* delta = choices->at(0).at("delta").as_object().if_contains("content"))
                text += json::value_to<std::string>(*delta);
        }
        return text;
    }
};

class GatewayTest : public testing::Test {
protected:
    void start(std::vector<FakeWorker::Script> scripts, GatewayOptions options = {}) {
        worker = std::make_unique<FakeWorker>(loop, std::move(scripts));
        start_gateway(std::move(options));
        run_until([this] { return get("/ready").status == 200; });
    }

    void start_gateway(GatewayOptions options) {
        static const auto preparer = std::make_shared<const RequestPreparer>(
            krill(), PoolProfile{.model = "krill",
                                 .dialect = "deepseek-v4.1",
                                 .thinking = protocol::Thinking::kOff,
                                 .context_tokens = 131'072});
        if (std::ranges::find(options.native_pools, "stable", &NativePoolOptions::name) ==
            options.native_pools.end())
            options.native_pools.push_back({.name = "stable", .workers = {{.url = worker->url()}}});
        for (NativePoolOptions& pool : options.native_pools) pool.preparer = preparer;
        options.stable = "stable";
        auto created = Gateway::create(loop, std::move(options));
        ASSERT_TRUE(created.has_value()) << created.error().to_string();
        gateway = std::move(*created);
    }

    /// Turns the loop until `condition` holds; a test's own timeout ends a wait that never does.
    void run_until(const std::function<bool()>& condition) {
        while (!condition()) turn();
    }
    void turn() {
        // One pass: a timer of no delay stops the wait after what is ready has run.
        ASSERT_LT(++turns, 30'000) << "what was waited for did not happen";
        loop.run_for(std::chrono::milliseconds(1));
    }

    Reply send(std::string method, const std::string& path, std::string body = {},
               net::HttpHeaders headers = {}, std::uint16_t port = 0) {
        Reply reply;
        const auto call =
            begin_send(reply, std::move(method), path, std::move(body), std::move(headers), port);
        run_until([&] { return reply.done; });
        return reply;
    }
    std::unique_ptr<net::HttpCall> begin_send(Reply& reply, std::string method,
                                              const std::string& path, std::string body,
                                              net::HttpHeaders headers = {},
                                              std::uint16_t port = 0) {
        const std::uint16_t at = port == 0 ? gateway->port() : port;
        return client.start(
            {.method = std::move(method),
             .url = "http://127.0.0.1:" + std::to_string(at) + path,
             .headers = std::move(headers),
             .body = std::move(body)},
            {.on_head =
                 [&reply](int status, const net::HttpHeaders& head) {
                     reply.status = status;
                     reply.headers = head;
                 },
             .on_data = [&reply](std::string_view data) { reply.body += data; },
             .on_done = [&reply] { reply.done = true; },
             .on_error = [&reply](const Error&) { reply.done = reply.cut = true; }});
    }
    Reply get(const std::string& path) { return send("GET", path); }
    Reply chat(std::string_view fields, net::HttpHeaders headers = {}) {
        return send("POST", "/v1/chat/completions", body(fields), std::move(headers));
    }
    static std::string body(std::string_view fields) {
        return R"({"model":"krill","messages":[{"role":"user","content":"Hi"}])" +
               std::string(fields) + "}";
    }
    [[nodiscard]] json::value status() {
        return send("GET", "/admin/status", {}, {}, gateway->admin_port()).json();
    }
    [[nodiscard]] std::string metrics() {
        return send("GET", "/metrics", {}, {}, gateway->admin_port()).body;
    }

    net::EventLoop loop;
    net::HttpClient client{loop};
    std::unique_ptr<FakeWorker> worker;
    std::unique_ptr<Gateway> gateway;
    int turns = 0;
};

}  // namespace sluice::gateway
