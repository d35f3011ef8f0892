// The gateway over real sockets, in front of workers that do what a test tells them to.

#include "gateway/gateway.h"

#include <algorithm>
#include <boost/json.hpp>

#include "gateway/model_vocabulary.h"
#include "net/sse.h"
#include "port/generate.h"
#include "port/load_report.h"

namespace sluice::gateway {
namespace {

namespace json = boost::json;

const text::Tokenizer& krill() {
    static const text::Tokenizer tokenizer = *load_tokenizer(*find_model("krill"));
    return tokenizer;
}

std::vector<TokenId> ids(std::string_view text) { return krill().encode_with_control(text); }

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

    port::ServerInfo info;
    bool ready = true;
    bool answers = true;
    std::uint32_t pid = 100;
    std::vector<port::GenerateRequest> requests;
    std::vector<std::shared_ptr<net::HttpExchange>> exchanges;
    std::size_t gone = 0;  ///< Requests whose connection the gateway closed early.

private:
    void serve(const std::shared_ptr<net::HttpExchange>& exchange) {
        const std::string& path = exchange->request().path;
        if (!answers) return exchange->abort();
        if (path == "/ready")
            return exchange->respond(net::HttpResponse::json(
                ready ? 200 : 503,
                to_json(port::LoadReport{
                    .state = ready ? port::EngineState::kReady : port::EngineState::kLoading,
                    .pid = pid})));
        if (path == "/server_info")
            return exchange->respond(net::HttpResponse::json(200, to_json(info)));
        requests.push_back(*port::parse_generate_request(exchange->request().body));
        exchanges.push_back(exchange);
        exchange->on_client_gone([this] { ++gone; });
        const std::size_t turn = std::min(requests.size(), scripts_.size()) - 1;
        scripts_[turn](requests.back(), *exchange);
    }

    std::vector<Script> scripts_;
    std::unique_ptr<net::HttpServer> server_;
};

void send_frame(net::HttpExchange& exchange, port::GenerateFrame frame) {
    frame.rid = port::parse_generate_request(exchange.request().body)->rid;
    exchange.write(net::sse_event(to_json(frame)));
}

port::GenerateFrame tokens(std::vector<TokenId> output) {
    port::GenerateFrame frame;
    frame.output_ids = std::move(output);
    frame.prompt_tokens = 5;
    return frame;
}

void begin(net::HttpExchange& exchange) {
    exchange.begin_stream(200, {{"Content-Type", "text/event-stream"}});
}

void end_with(net::HttpExchange& exchange, port::FinishType type) {
    port::GenerateFrame last = tokens({});
    last.finish_reason = {.type = type, .matched = {}, .message = "as told"};
    send_frame(exchange, last);
    exchange.write(net::sse_event("[DONE]"));
    exchange.end_stream();
}

/// Answers with `text` and stops.
FakeWorker::Script says(std::string text) {
    return [text](const port::GenerateRequest& request, net::HttpExchange& exchange) {
        begin(exchange);
        std::vector<TokenId> all = ids(text);
        all.erase(all.begin(),
                  all.begin() + static_cast<std::ptrdiff_t>(request.resume_output_ids.size()));
        send_frame(exchange, tokens(all));
        end_with(exchange, port::FinishType::kStop);
    };
}

/// Says what is missing of the first `count` tokens of `text` and dies.
FakeWorker::Script dies_after(std::string text, std::size_t count) {
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
FakeWorker::Script hangs(std::string text) {
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
        options.native_pools.push_back({.name = "stable", .urls = {worker->url()}});
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

TEST_F(GatewayTest, AStreamHasRoleDeltasFinishUsageAndEnd) {
    start({says("Paris.")});
    const Reply reply = chat(R"(,"stream":true,"stream_options":{"include_usage":true},"seed":7)",
                             {{"x-request-id", "mine-1"}});
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.headers.find("x-request-id"), "mine-1");
    EXPECT_EQ(reply.headers.find("x-sluice-seed"), "7");
    EXPECT_EQ(reply.headers.find("x-sluice-pool"), "stable");
    const auto events = reply.events();
    EXPECT_EQ(json::parse(events.front()).at("choices").at(0).at("delta").at("role"), "assistant");
    EXPECT_EQ(reply.content(), "Paris.");
    EXPECT_EQ(events.back(), "[DONE]");
    const auto usage = json::parse(events[events.size() - 2]);
    EXPECT_TRUE(usage.at("choices").as_array().empty());
    EXPECT_EQ(usage.at("usage").at("prompt_tokens"), 5);
    const auto finish = json::parse(events[events.size() - 3]);
    EXPECT_EQ(finish.at("choices").at(0).at("finish_reason"), "stop");
    EXPECT_NE(metrics().find(R"(outcome="ok",pool="stable"} 1)"), std::string::npos) << metrics();
}

TEST_F(GatewayTest, ABodyHoldsTheSameAnswer) {
    start({says("Paris.")});
    const Reply reply = chat("");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.json().at("choices").at(0).at("message").at("content"), "Paris.");
    EXPECT_TRUE(reply.headers.find("x-sluice-seed").has_value());
    EXPECT_EQ(std::to_string(worker->requests[0].sampling_params.seed),
              *reply.headers.find("x-sluice-seed"));
}

TEST_F(GatewayTest, AStreamSurvivesItsWorker) {
    const std::string text = "Once upon a time there was a fox.";
    start({dies_after(text, 3), dies_after(text, 5), says(text)});
    const Reply reply = chat(R"(,"stream":true)");
    EXPECT_EQ(reply.content(), text);
    EXPECT_EQ(reply.events().back(), "[DONE]");
    ASSERT_EQ(worker->requests.size(), 3U);
    std::vector<TokenId> first = ids(text);
    first.resize(3);
    EXPECT_EQ(worker->requests[1].resume_output_ids, first);
    EXPECT_EQ(worker->requests[2].resume_output_ids.size(), 5U);
    EXPECT_EQ(worker->requests[1].sampling_params, worker->requests[0].sampling_params);
    EXPECT_NE(metrics().find("sluice_resumes_total"), std::string::npos);
}

TEST_F(GatewayTest, TwoLossesWithoutANewTokenEndTheRequest) {
    start({dies_after("x", 0)});
    const Reply reply = chat("");
    EXPECT_EQ(reply.status, 502);
    EXPECT_EQ(reply.json().at("error").at("code"), "worker_lost");
    EXPECT_EQ(worker->requests.size(), 2U);
    EXPECT_EQ(gateway->live_requests(), 0U);
}

TEST_F(GatewayTest, AStreamIsNotContinuedByAnotherModel) {
    start({[this](const port::GenerateRequest& request, net::HttpExchange& exchange) {
        worker->info.fingerprint = "another";
        dies_after("Once upon a time", 2)(request, exchange);
    }});
    const Reply reply = chat(R"(,"stream":true)");
    const auto events = reply.events();
    EXPECT_EQ(json::parse(events.back()).at("error").at("code"), "worker_lost");
    for (const std::string& event : events)
        EXPECT_EQ(event.find(R"("finish_reason":")"), std::string::npos);
}

TEST_F(GatewayTest, WhatTheWorkerRefusesIsTheClientsError) {
    start({[](const port::GenerateRequest&, net::HttpExchange& exchange) {
        exchange.respond(net::HttpResponse::json(
            400, R"({"error":{"message":"no","code":"invalid","param":"top_k"}})"));
    }});
    const Reply reply = chat("");
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.json().at("error").at("param"), "top_k");
    EXPECT_EQ(worker->requests.size(), 1U);
}

TEST_F(GatewayTest, StatusSaysWhatIsKnownOfEachWorker) {
    start({says("Paris.")});
    EXPECT_EQ(chat("").status, 200);
    const json::value all = status();
    EXPECT_EQ(all.at("plan").at("stable"), "stable");
    const json::value& pool = all.at("pools").at(0);
    EXPECT_EQ(pool.at("name"), "stable");
    EXPECT_EQ(pool.at("engine"), "native");
    EXPECT_EQ(pool.at("ready"), true);
    EXPECT_EQ(pool.at("dispatched_total"), 1);
    const json::value& first = pool.at("workers").at(0);
    EXPECT_EQ(first.at("name"), "stable-0");
    EXPECT_EQ(first.at("url").as_string(), worker->url());
    EXPECT_EQ(first.at("pid"), 100);
    EXPECT_EQ(first.at("state"), "ready");
    EXPECT_EQ(first.at("running"), 0);
    EXPECT_TRUE(first.at("report_age_ms").is_int64());
    EXPECT_EQ(first.at("versions").at("fingerprint"), "f");
}

TEST_F(GatewayTest, StatusOfAWorkerThatNeverAnsweredHoldsNothingMadeUp) {
    worker = std::make_unique<FakeWorker>(loop, std::vector{says("x")});
    worker->answers = false;
    start_gateway({});
    const json::value pool = status().at("pools").at(0);
    EXPECT_EQ(pool.at("ready"), false);
    EXPECT_EQ(pool.at("workers").at(0).at("state"), "lost");
    for (const char* key : {"pid", "running", "waiting", "report_age_ms", "versions"})
        EXPECT_TRUE(pool.at("workers").at(0).at(key).is_null()) << key;
}

TEST_F(GatewayTest, AWorkerThatCameBackBetweenTwoProbesIsReadAgain) {
    start({says("x")});
    worker->pid = 101;
    worker->info.fingerprint = "another";
    run_until([this] {
        const json::value first = status().at("pools").at(0).at("workers").at(0);
        return first.at("pid") == 101 && first.at("versions").at("fingerprint") == "another";
    });
}

TEST_F(GatewayTest, AStopStringEndsTheAnswerAndFreesTheWorker) {
    start({[](const port::GenerateRequest&, net::HttpExchange& exchange) {
        begin(exchange);
        send_frame(exchange, tokens(ids("one two three four")));
    }});
    const Reply reply = chat(R"(,"stop":["three"])");
    EXPECT_EQ(reply.json().at("choices").at(0).at("message").at("content"), "one two ");
    EXPECT_EQ(reply.json().at("choices").at(0).at("finish_reason"), "stop");
    run_until([this] { return worker->gone == 1; });
}

TEST_F(GatewayTest, AClientThatGoesFreesTheWorkerBeforeAndAfterTheFirstToken) {
    start({[](const port::GenerateRequest&, net::HttpExchange&) {}, hangs("Paris")});
    for (std::size_t round = 1; round <= 2; ++round) {
        Reply reply;
        auto call = begin_send(reply, "POST", "/v1/chat/completions", body(R"(,"stream":true)"));
        run_until([&] { return worker->requests.size() == round; });
        if (round == 2) run_until([&] { return !reply.content().empty(); });
        call.reset();
        run_until([&] { return worker->gone == round && gateway->live_requests() == 0; });
    }
    EXPECT_NE(metrics().find(R"(outcome="client_gone",pool="stable"} 2)"), std::string::npos);
    EXPECT_NE(metrics().find(R"(sluice_leases{phase="full"} 0)"), std::string::npos) << metrics();
}

TEST_F(GatewayTest, RequestsWaitForAWorkerUntilTheirDeadline) {
    worker = std::make_unique<FakeWorker>(loop, std::vector{says("Paris.")});
    worker->ready = false;
    start_gateway({.queue_max = 2});
    EXPECT_EQ(get("/health").status, 200);
    EXPECT_EQ(get("/ready").status, 503);
    const Reply late = chat("", {{"x-sluice-deadline-ms", "30"}});
    EXPECT_EQ(late.status, 504);
    EXPECT_EQ(late.json().at("error").at("code"), "deadline_exceeded");

    Reply first;
    Reply second;
    const auto a = begin_send(first, "POST", "/v1/chat/completions", body(""));
    const auto b = begin_send(second, "POST", "/v1/chat/completions", body(""));
    run_until([this] { return gateway->queued_requests() == 2; });
    const Reply third = chat("");
    EXPECT_EQ(third.status, 429);
    EXPECT_EQ(third.json().at("error").at("code"), "queue_full");
    EXPECT_TRUE(third.headers.find("Retry-After").has_value());
    worker->ready = true;
    run_until([&] { return first.done && second.done; });
    EXPECT_EQ(first.status, 200);
    EXPECT_EQ(second.status, 200);
}

TEST_F(GatewayTest, ADeadlineEndsAStreamWithAnErrorEvent) {
    start({hangs("Paris")});
    const Reply reply = chat(R"(,"stream":true)", {{"x-sluice-deadline-ms", "100"}});
    EXPECT_EQ(json::parse(reply.events().back()).at("error").at("code"), "deadline_exceeded");
    run_until([this] { return worker->gone == 1; });
}

TEST_F(GatewayTest, MoreThanTheContextIsRefusedWithBothNumbers) {
    start({says("x")});
    const Reply reply = chat(R"(,"max_tokens":5000)");
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.json().at("error").at("code"), "context_length_exceeded");
    EXPECT_NE(reply.body.find("1000"), std::string::npos);
    EXPECT_NE(reply.body.find("5000"), std::string::npos);
    EXPECT_EQ(reply.json().at("error").at("param"), "max_tokens");
    EXPECT_TRUE(worker->requests.empty());
}

TEST_F(GatewayTest, WhatNoWorkerCouldTakeDoesNotWaitForOne) {
    worker = std::make_unique<FakeWorker>(loop, std::vector{says("x")});
    worker->ready = false;
    start_gateway({});
    EXPECT_EQ(chat(R"(,"max_tokens":131072)").status, 400);
}

/// Keeps the reports, and copies what is dispatched to `copy_to` if that is set.
class Witness final : public RequestObserver {
public:
    void on_dispatch(Generation& generation) override {
        if (copy_to == nullptr || generation.request().role == RequestRole::kShadow) return;
        generation.collect();
        copied = gateway->copy(generation, *copy_to);
    }
    void on_done(const Generation&, const RequestReport& report) override {
        reports.push_back(report);
    }

    Gateway* gateway = nullptr;
    Pool* copy_to = nullptr;
    std::string copied;
    std::vector<RequestReport> reports;
};

TEST_F(GatewayTest, EveryRequestIsReportedOnceWithItsLegs) {
    const std::string text = "Once upon a time there was a fox.";
    const auto witness = std::make_shared<Witness>();
    start({dies_after(text, 3), says(text)}, {.observers = {witness}});
    EXPECT_EQ(chat(R"(,"stream":true,"seed":7)").content(), text);
    ASSERT_EQ(witness->reports.size(), 1U);
    const RequestReport& report = witness->reports[0];
    EXPECT_EQ(report.outcome, Outcome::kOk);
    EXPECT_EQ(report.kind, RequestKind::kSeeded);
    EXPECT_EQ(report.seed, 7U);
    EXPECT_EQ(report.pool, "stable");
    EXPECT_EQ(report.prompt_tokens, 5U);
    EXPECT_TRUE(report.prompt_counted);
    EXPECT_EQ(report.completion_tokens, ids(text).size());
    EXPECT_EQ(report.resumes, 1U);
    EXPECT_EQ(report.status, 200);
    EXPECT_TRUE(report.ttft.has_value());
    EXPECT_EQ(report.tbt.count(), ids(text).size() - 1);
    EXPECT_GE(report.recomputed_tokens, 3U);
    ASSERT_EQ(report.legs.size(), 2U);
    EXPECT_EQ(report.legs[0].tokens, 3U);
    EXPECT_FALSE(report.legs[0].fault.empty());
    EXPECT_EQ(report.legs[1].worker, "stable-0");
    EXPECT_EQ(report.legs[1].versions->fingerprint, "f");
    EXPECT_FALSE(report.system_fingerprint.empty());

    EXPECT_EQ(send("POST", "/v1/chat/completions", "{").status, 400);
    ASSERT_EQ(witness->reports.size(), 2U);
    EXPECT_EQ(witness->reports[1].outcome, Outcome::kRejected);
    EXPECT_EQ(witness->reports[1].error_code, "invalid_request");
    EXPECT_EQ(witness->reports[1].status, 400);
    EXPECT_TRUE(witness->reports[1].legs.empty());
}

TEST_F(GatewayTest, ACopyRunsOnItsOwnPoolAndNobodyHearsIt) {
    FakeWorker candidate(loop, {says("Lyon.")});
    const auto witness = std::make_shared<Witness>();
    start({says("Paris.")}, {.native_pools = {{.name = "candidate", .urls = {candidate.url()}}},
                             .observers = {witness}});
    run_until([this] { return gateway->pools().any_ready(*gateway->pools().find("candidate")); });
    witness->gateway = gateway.get();
    witness->copy_to = gateway->pools().find("candidate");
    EXPECT_EQ(chat(R"(,"seed":3)").json().at("choices").at(0).at("message").at("content"),
              "Paris.");
    run_until([&] { return witness->reports.size() == 2; });
    const bool first = witness->reports[0].role == RequestRole::kShadow;
    const RequestReport& shadow = witness->reports[first ? 0 : 1];
    const RequestReport& answer = witness->reports[first ? 1 : 0];
    EXPECT_EQ(shadow.rid, witness->copied);
    EXPECT_EQ(shadow.pool, "candidate");
    EXPECT_EQ(shadow.answer->text, "Lyon.");
    EXPECT_EQ(answer.answer->text, "Paris.");
    EXPECT_EQ(answer.answer->finish_reason, "stop");
    EXPECT_EQ(candidate.requests[0].input_ids, worker->requests[0].input_ids);
}

class Switch final : public Steering {
public:
    explicit Switch(Pool*& to) : to_(to) {}
    Pool* choose(const InboundRequest&, Pool*) override { return to_; }
    [[nodiscard]] bool serves(std::string_view) const override { return true; }

private:
    Pool*& to_;
};

TEST_F(GatewayTest, WhatWaitsIsSteeredAgainWhenItIsDispatched) {
    FakeWorker slow(loop, {says("Lyon.")});
    slow.ready = false;
    Pool* chosen = nullptr;
    start({says("Paris.")},
          {.native_pools = {{.name = "candidate", .urls = {slow.url()}}},
           .make_steering = [&](PoolSet&) { return std::make_unique<Switch>(chosen); }});
    chosen = gateway->pools().find("candidate");
    Reply reply;
    const auto call = begin_send(reply, "POST", "/v1/chat/completions", body(""));
    run_until([this] { return gateway->queued_requests() == 1; });
    chosen = gateway->pools().find("stable");
    gateway->replan();
    run_until([&] { return reply.done; });
    EXPECT_EQ(reply.headers.find("x-sluice-pool"), "stable");
    EXPECT_TRUE(slow.requests.empty());
}

TEST_F(GatewayTest, PathsAndMethodsAreToldApart) {
    start({says("x")});
    const Reply nothing = send("GET", "/v1/nothing", {}, {{"x-request-id", "mine-2"}});
    EXPECT_EQ(nothing.status, 404);
    EXPECT_EQ(nothing.headers.find("x-request-id"), "mine-2");
    const Reply wrong = get("/v1/chat/completions");
    EXPECT_EQ(wrong.status, 405);
    EXPECT_EQ(wrong.headers.find("Allow"), "POST");
    EXPECT_EQ(wrong.json().at("error").at("code"), "method_not_allowed");
    EXPECT_EQ(get("/v1/models").json().at("data").at(0).at("id"), "krill");
    EXPECT_EQ(get("/v1/models/krill").json().at("id"), "krill");
    EXPECT_EQ(get("/v1/models/other").status, 404);
    EXPECT_EQ(send("POST", "/v1/models/krill").headers.find("Allow"), "GET, HEAD");
    EXPECT_EQ(get("/metrics").status, 404);
    const Reply unknown = send("POST", "/v1/chat/completions",
                               R"({"model":"other","messages":[{"role":"user","content":"x"}]})");
    EXPECT_EQ(unknown.status, 404);
    EXPECT_EQ(unknown.json().at("error").at("code"), "model_not_found");
}

TEST_F(GatewayTest, DrainingLetsRunningRequestsEnd) {
    start({hangs("Paris")});
    Reply reply;
    const auto call = begin_send(reply, "POST", "/v1/chat/completions", body(R"(,"stream":true)"));
    run_until([&] { return !reply.content().empty(); });
    bool drained = false;
    gateway->drain(std::chrono::seconds(60), [&] { drained = true; });
    turn();
    EXPECT_FALSE(drained);
    end_with(*worker->exchanges[0], port::FinishType::kLength);
    run_until([&] { return drained; });
    run_until([&] { return reply.done; });
    EXPECT_EQ(reply.events().back(), "[DONE]");
}

TEST_F(GatewayTest, ALongPromptIsPreparedBesideTheLoop) {
    start({says("Paris.")});
    const std::string text(60'000, ' ');
    const Reply reply =
        send("POST", "/v1/chat/completions",
             R"({"messages":[{"role":"user","content":")" + text + R"("}],"max_tokens":5})");
    // Far more spaces than the context holds, if each were a token: either answer is right, hanging
    // or crashing is not.
    EXPECT_TRUE(reply.status == 200 || reply.status == 400) << reply.body;
}

}  // namespace
}  // namespace sluice::gateway
