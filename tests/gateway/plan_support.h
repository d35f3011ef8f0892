#pragma once

// The traffic plan at work: two pools of engines that a test scripts, real sockets, and a state folder
// that outlives the gateway.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gateway/model_vocabulary.h"
#include "gateway/plan_service.h"
#include "net/sse.h"
#include "port/generate.h"
#include "port/load_report.h"

namespace sluice::gateway {

namespace json = boost::json;
namespace fs = std::filesystem;

inline std::shared_ptr<const RequestPreparer> preparer() {
    static const auto krill = std::make_shared<const RequestPreparer>(
        *load_tokenizer(*find_model("krill")), PoolProfile{.model = "krill",
                                                           .dialect = "deepseek-v4.1",
                                                           .thinking = protocol::Thinking::kOff,
                                                           .context_tokens = 131'072});
    return krill;
}

/// An engine that says one text, and how likely each token of a prompt is to it.
class ScriptedEngine {
public:
    ScriptedEngine(net::EventLoop& loop, std::string text) : text_(std::move(text)) {
        server_ = *net::HttpServer::listen(
            loop, {}, [this](const std::shared_ptr<net::HttpExchange>& each) { serve(each); });
    }

    [[nodiscard]] std::string url() const {
        return fmt::format("http://127.0.0.1:{}", server_->port());
    }
    void say(std::string text) { text_ = std::move(text); }
    /// Streams that were held back get their end.
    void release() {
        holding = false;
        for (const auto& each : std::exchange(held_, {})) finish(*each);
    }

    bool ready = true;
    std::uint32_t context = 1000;  ///< Tokens.
    std::string weights = "f";     ///< Their fingerprint.
    bool holding = false;          ///< Streams get their head and a token, and no end.
    float logprob = -0.5F;
    std::vector<port::GenerateRequest> answers;  ///< Requests but those that only score.
    std::size_t scorings = 0;
    std::size_t gone = 0;

private:
    using Exchange = std::shared_ptr<net::HttpExchange>;

    void serve(const Exchange& exchange) {
        const std::string& path = exchange->request().path;
        if (path == "/ready") {
            const port::LoadReport report{.state = ready ? port::EngineState::kReady
                                                         : port::EngineState::kLoading};
            return exchange->respond(net::HttpResponse::json(ready ? 200 : 503, to_json(report)));
        }
        if (path == "/server_info") {
            port::ServerInfo info{.model = "Krill", .fingerprint = weights, .numerics_id = "n"};
            info.tokenizer_digest = "t";
            info.context_length = context;
            info.vocabulary = 4096;
            info.max_running = 64;
            return exchange->respond(net::HttpResponse::json(200, to_json(info)));
        }
        if (path == "/kv/bounds") return exchange->respond(net::HttpResponse::json(200, "{}"));
        const auto request = *port::parse_generate_request(exchange->request().body);
        if (request.logprob_start_len >= 0) return score(*exchange, request);
        answers.push_back(request);
        exchange->on_client_gone([this] { ++gone; });
        exchange->begin_stream(200, {{"Content-Type", "text/event-stream"}});
        send(*exchange, {.output_ids = ids(0, 1)});
        if (!holding) return finish(*exchange);
        held_.push_back(exchange);
    }
    void score(net::HttpExchange& exchange, const port::GenerateRequest& request) {
        ++scorings;
        port::GenerateFrame frame{.output_ids = {1}};
        for (std::size_t i = static_cast<std::size_t>(request.logprob_start_len);
             i < request.input_ids.size(); ++i)
            frame.input_logprobs.push_back(
                {.chosen = {.token = request.input_ids[i], .logprob = logprob}, .top = {}});
        exchange.begin_stream(200, {{"Content-Type", "text/event-stream"}});
        send(exchange, std::move(frame));
        end(exchange);
    }
    std::vector<TokenId> ids(std::size_t from, std::size_t to = SIZE_MAX) const {
        const auto all = preparer()->tokenizer().encode_with_control(text_);
        return {all.begin() + static_cast<std::ptrdiff_t>(std::min(from, all.size())),
                all.begin() + static_cast<std::ptrdiff_t>(std::min(to, all.size()))};
    }
    void finish(net::HttpExchange& exchange) {
        send(exchange, {.output_ids = ids(1)});
        end(exchange);
    }
    void end(net::HttpExchange& exchange) {
        send(exchange, {.finish_reason = port::FinishReason{
                            .type = port::FinishType::kStop, .matched = {}, .message = ""}});
        exchange.write(net::sse_event("[DONE]"));
        exchange.end_stream();
    }
    static void send(net::HttpExchange& exchange, port::GenerateFrame frame) {
        frame.rid = port::parse_generate_request(exchange.request().body)->rid;
        frame.prompt_tokens = 5;
        exchange.write(net::sse_event(to_json(frame)));
    }

    std::string text_;
    std::vector<Exchange> held_;
    std::unique_ptr<net::HttpServer> server_;
};

struct Reply {
    int status = 0;
    net::HttpHeaders headers;
    std::string body;
    bool done = false;

    [[nodiscard]] json::value json() const { return json::parse(body); }
    [[nodiscard]] std::string pool() const {
        return std::string(headers.find("x-sluice-pool").value_or(""));
    }
};

/// Whoever comes is an admin.
class AdminsOnly final : public AdmissionGate {
public:
    void attach(std::function<std::optional<std::size_t>()>, metrics::Registry&) override {}
    void room_changed() override {}
    [[nodiscard]] std::size_t waiting() const override { return 0; }
    [[nodiscard]] std::unique_ptr<AdmissionTicket> admit(const InboundRequest&,
                                                         Decide decide) override {
        decide({.refused = {}, .retry_after = {}, .may_pin = true});
        return nullptr;
    }
};

/// What was told of a copy that has ended.
struct Told {
    RequestReport copy;
    std::string baseline;
    std::optional<traffic::Comparison> comparison;
};

inline constexpr std::string_view kStable = "[plan]\nstable = \"stable\"\n";
inline constexpr std::string_view kSplit =
    "[plan]\nstable = \"stable\"\n[[plan.split]]\npool = \"candidate\"\nweight = 1\nlease = "
    "\"10m\"\n";
inline constexpr std::string_view kShadow =
    "[plan]\nstable = \"stable\"\n[[plan.shadow]]\npool = \"candidate\"\nshare = 1\n";

class PlanServiceTest : public testing::Test {
protected:
    PlanServiceTest() { EXPECT_NE(::mkdtemp(folder.data()), nullptr); }
    ~PlanServiceTest() override {
        gateway.reset();
        std::error_code ignored;
        fs::remove_all(folder, ignored);
    }

    /// Starts, or restarts, a gateway with the plan in its configuration.
    void start(std::string_view plan) {
        gateway.reset();
        service = std::make_shared<PlanService>(
            loop, PlanServiceOptions{
                      .plan = *traffic::read_plan(plan, "f.toml", kPools),
                      .pools = kPools,
                      .state_folder = folder,
                      .on_copy_done = [this](const RequestReport& copy, const std::string& baseline,
                                             const auto& comparison) {
                          told.push_back({copy, baseline, comparison});
                      }});
        GatewayOptions options;
        options.native_pools = {
            {.name = "stable", .workers = {{.url = stable.url()}}, .preparer = preparer()},
            {.name = "candidate", .workers = {{.url = candidate.url()}}, .preparer = preparer()}};
        options.stable = "stable";
        options.make_steering = [this](PoolSet& pools) { return service->make_steering(pools); };
        options.observers = {service};
        options.admission = std::make_shared<AdminsOnly>();
        gateway = std::move(*Gateway::create(loop, std::move(options)));
        service->attach(*gateway);
        run_until([this] { return stable.ready == ready("stable"); });
        run_until([this] { return candidate.ready == ready("candidate"); });
    }
    bool ready(std::string_view pool) {
        return gateway->pools().any_ready(*gateway->pools().find(pool));
    }

    void run_until(const std::function<bool()>& condition) {
        for (int turns = 0; !condition(); ++turns) {
            ASSERT_LT(turns, 60'000) << "what was waited for did not happen";
            loop.run_for(std::chrono::milliseconds(1));
        }
    }
    std::unique_ptr<net::HttpCall> begin(Reply& reply, net::ClientRequest request) {
        return client.start(std::move(request),
                            {.on_head =
                                 [&reply](int status, const net::HttpHeaders& head) {
                                     reply.status = status;
                                     reply.headers = head;
                                 },
                             .on_data = [&reply](std::string_view data) { reply.body += data; },
                             .on_done = [&reply] { reply.done = true; },
                             .on_error = [&reply](const Error&) { reply.done = true; }});
    }
    Reply send(net::ClientRequest request) {
        Reply reply;
        const auto call = begin(reply, std::move(request));
        run_until([&] { return reply.done; });
        return reply;
    }
    Reply pinned_chat(std::string pool) {
        net::ClientRequest request = chat_request();
        request.headers.set("x-sluice-pool", std::move(pool));
        return send(std::move(request));
    }
    net::ClientRequest chat_request(std::string_view fields = "") {
        return {.method = "POST",
                .url = fmt::format("http://127.0.0.1:{}/v1/chat/completions", gateway->port()),
                .headers = {},
                .body = fmt::format(
                    R"({{"model":"krill","messages":[{{"role":"user","content":"Hi {}"}}]{}}})",
                    ++chats, fields)};
    }
    Reply chat(std::string_view fields = "") { return send(chat_request(fields)); }
    Reply admin(std::string method, std::string_view path, std::string body = {}) {
        return send({.method = std::move(method),
                     .url = fmt::format("http://127.0.0.1:{}{}", gateway->admin_port(), path),
                     .headers = {{"x-sluice-by", "me@here"}, {"x-sluice-why", "a test"}},
                     .body = std::move(body)});
    }
    std::string metric(const std::string& line) {
        const std::string text = admin("GET", "/metrics").body;
        const std::size_t at = text.find("\n" + line + " ");
        if (at == std::string::npos) return "0";
        const std::size_t from = at + line.size() + 2;
        return text.substr(from, text.find('\n', from) - from);
    }
    std::string shadows(const std::string& result) {
        return metric("sluice_shadow_total{result=\"" + result + "\"}");
    }
    std::string audit() {
        std::ostringstream text;
        text << std::ifstream(folder + "/audit.jsonl").rdbuf();
        return text.str();
    }

    const std::vector<std::string> kPools = {"stable", "candidate"};
    std::string folder = testing::TempDir() + "sluice-XXXXXX";
    net::EventLoop loop;
    net::HttpClient client{loop};
    ScriptedEngine stable{loop, "Paris."};
    ScriptedEngine candidate{loop, "Paris."};
    std::shared_ptr<PlanService> service;
    std::unique_ptr<Gateway> gateway;
    std::vector<Told> told;
    int chats = 0;
};

}  // namespace sluice::gateway
