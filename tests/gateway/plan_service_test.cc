// The traffic plan at work: two pools of engines that a test scripts, real sockets, and a state folder
// that outlives the gateway.

#include "gateway/plan_service.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "gateway/model_vocabulary.h"
#include "net/sse.h"
#include "port/generate.h"
#include "port/load_report.h"

namespace sluice::gateway {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;
using testing::HasSubstr;

std::shared_ptr<const RequestPreparer> preparer() {
    static const auto krill = std::make_shared<const RequestPreparer>(
        *load_tokenizer(*find_model("krill")), PoolProfile{.model = "krill",
                                                           .dialect = "deepseek-v4.1",
                                                           .thinking = protocol::Thinking::kOff,
                                                           .context_tokens = 131'072});
    return krill;
}

/// An engine that says one text, and how likely each token of a prompt is to it.
class Engine {
public:
    Engine(net::EventLoop& loop, std::string text) : text_(std::move(text)) {
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
    bool holding = false;  ///< Streams get their head and a token, and no end.
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
            port::ServerInfo info{.model = "Krill", .fingerprint = "f", .numerics_id = "n"};
            info.tokenizer_digest = "t";
            info.context_length = 1000;
            info.vocabulary = 4096;
            info.max_running = 64;
            return exchange->respond(net::HttpResponse::json(200, to_json(info)));
        }
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

constexpr std::string_view kStable = "[plan]\nstable = \"stable\"\n";
constexpr std::string_view kSplit =
    "[plan]\nstable = \"stable\"\n[[plan.split]]\npool = \"candidate\"\nweight = 1\nlease = "
    "\"10m\"\n";
constexpr std::string_view kShadow =
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
            loop, PlanServiceOptions{.plan = *traffic::read_plan(plan, "f.toml", kPools),
                                     .pools = kPools,
                                     .state_folder = folder});
        GatewayOptions options;
        options.native_pools = {
            {.name = "stable", .urls = {stable.url()}, .preparer = preparer()},
            {.name = "candidate", .urls = {candidate.url()}, .preparer = preparer()}};
        options.stable = "stable";
        options.make_steering = [this](PoolSet& pools) { return service->make_steering(pools); };
        options.observers = {service};
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
    Engine stable{loop, "Paris."};
    Engine candidate{loop, "Paris."};
    std::shared_ptr<PlanService> service;
    std::unique_ptr<Gateway> gateway;
    int chats = 0;
};

// ---- Plans over the admin address -----------------------------------------------------------------

TEST_F(PlanServiceTest, APlanIsAppliedShownAndWrittenDown) {
    start(kStable);
    EXPECT_EQ(chat().pool(), "stable");
    const Reply applied = admin("PUT", "/admin/plan", std::string(kSplit));
    ASSERT_EQ(applied.status, 200) << applied.body;
    EXPECT_EQ(applied.json().at("version"), 2);
    EXPECT_EQ(applied.json().at("changes").at(0), "+ split candidate weight 1 lease 10m");
    EXPECT_EQ(chat().pool(), "candidate");
    EXPECT_THAT(admin("GET", "/admin/plan").json().at("toml").as_string(), HasSubstr("weight = 1"));
    EXPECT_THAT(audit(), HasSubstr(R"("what":"apply","why":"new plan: a test","version":2)"));
    EXPECT_THAT(audit(), HasSubstr(R"("who":"me@here at admin 127.0.0.1)"));
    start(kStable);
    EXPECT_EQ(chat().pool(), "candidate") << "a restart forgot what was applied";
}

TEST_F(PlanServiceTest, AWrongPlanIsToldLineByLineAndChangesNothing) {
    start(kStable);
    const Reply wrong =
        admin("PUT", "/admin/plan",
              "[plan]\nstable = \"stabel\"\n[[plan.split]]\npool = \"candidate\"\n");
    EXPECT_EQ(wrong.status, 400);
    const std::string message(wrong.json().at("error").at("message").as_string());
    EXPECT_THAT(message, HasSubstr("plan:2: plan.stable names no pool: 'stabel'"));
    EXPECT_THAT(message, HasSubstr("plan:3: plan.split.lease must be given"));
    EXPECT_EQ(admin("GET", "/admin/plan").json().at("version"), 1);
    EXPECT_EQ(admin("PUT", "/admin/plan", std::string(300'000, '#')).status, 413);
}

TEST_F(PlanServiceTest, ADifferenceIsShownAndNotApplied) {
    start(kStable);
    const Reply diff = admin("POST", "/admin/plan/diff", std::string(kShadow));
    EXPECT_EQ(diff.json().at("changes").at(0), "+ shadow candidate share 1 max_concurrent 8");
    EXPECT_EQ(admin("GET", "/admin/plan").json().at("version"), 1);
}

TEST_F(PlanServiceTest, WithoutAWayBackAPlanIsRefused) {
    stable.ready = false;
    start(kStable);
    const Reply refused = admin("PUT", "/admin/plan", std::string(kSplit));
    EXPECT_EQ(refused.status, 409);
    EXPECT_EQ(refused.json().at("error").at("param"), "plan.stable");
}

TEST_F(PlanServiceTest, StatusTellsThePlanAndTheWayBack) {
    start(kSplit);
    const json::value status = admin("GET", "/admin/status").json();
    EXPECT_EQ(status.at("plan").at("version"), 1);
    EXPECT_EQ(status.at("plan").at("latched"), false);
    EXPECT_TRUE(status.at("plan").at("reason").is_null());
    EXPECT_EQ(status.at("plan").at("splits").at(0).at("pool"), "candidate");
    EXPECT_EQ(status.at("rollback_capacity"), 64);
    EXPECT_EQ(status.at("rollback_needed"), 0);
    EXPECT_EQ(status.at("pools").as_array().size(), 2U);
}

// ---- Rolling back ---------------------------------------------------------------------------------

TEST_F(PlanServiceTest, AfterARollbackOf200StreamsNothingReachesTheCandidate) {
    start(kSplit);
    candidate.holding = true;
    std::vector<Reply> replies(200);
    std::vector<std::unique_ptr<net::HttpCall>> calls;
    for (Reply& reply : replies) calls.push_back(begin(reply, chat_request(R"(,"stream":true)")));
    run_until([this] { return candidate.answers.size() == 200; });

    ASSERT_EQ(admin("POST", "/admin/rollback").status, 200);
    const std::size_t before = candidate.answers.size();
    for (int i = 0; i < 50; ++i) EXPECT_EQ(chat().pool(), "stable");
    candidate.release();
    run_until([&] { return std::ranges::all_of(replies, &Reply::done); });
    for (const Reply& reply : replies) EXPECT_THAT(reply.body, HasSubstr("[DONE]"));
    // The same plan again, a restart of the gateway with the same file, and another file.
    EXPECT_EQ(admin("PUT", "/admin/plan", std::string(kSplit)).json().at("latched"), true);
    EXPECT_EQ(chat().pool(), "stable");
    for (const std::string_view plan : {kSplit, kShadow}) {
        start(plan);
        EXPECT_EQ(chat().pool(), "stable");
        EXPECT_EQ(admin("GET", "/admin/status").json().at("plan").at("reason"), "by hand: a test");
    }
    EXPECT_EQ(candidate.answers.size(), before);
    EXPECT_THAT(audit(), HasSubstr(R"("what":"rollback","why":"by hand: a test")"));
}

TEST_F(PlanServiceTest, WhatWaitsForTheCandidateGoesToStable) {
    start(kSplit);
    // Both are gone for a moment: requests wait, and the plan would send them to the candidate.
    stable.ready = candidate.ready = false;
    run_until([this] { return !ready("stable") && !ready("candidate"); });
    Reply reply;
    const auto call = begin(reply, chat_request());
    run_until([this] { return gateway->queued_requests() == 1; });
    ASSERT_EQ(admin("POST", "/admin/rollback").status, 200);
    candidate.ready = true;
    run_until([this] { return ready("candidate"); });
    stable.ready = true;
    run_until([&] { return reply.done; });
    EXPECT_EQ(reply.pool(), "stable");
    EXPECT_TRUE(candidate.answers.empty());
}

TEST_F(PlanServiceTest, EvacuationMovesRunningAnswersToStable) {
    start(kSplit);
    candidate.holding = true;
    Reply reply;
    const auto call = begin(reply, chat_request(R"(,"stream":true)"));
    run_until([this] { return candidate.answers.size() == 1; });
    run_until([&] {
        return reply.body.find("Par") != std::string::npos ||
               reply.body.find("content") != std::string::npos;
    });
    ASSERT_EQ(admin("POST", "/admin/rollback?evacuate=true").status, 200);
    run_until([&] { return reply.done; });
    EXPECT_EQ(stable.answers.size(), 1U);
    EXPECT_EQ(stable.answers[0].resume_output_ids.size(), 1U);
    EXPECT_THAT(reply.body, HasSubstr("[DONE]"));
    EXPECT_EQ(candidate.gone, 1U);
}

TEST_F(PlanServiceTest, OnlyRearmingBringsTheCandidateBack) {
    start(kSplit);
    EXPECT_EQ(admin("POST", "/admin/plan/rearm").status, 409);
    ASSERT_EQ(admin("POST", "/admin/rollback").status, 200);
    EXPECT_EQ(metric("sluice_plan_latched"), "1");
    ASSERT_EQ(admin("POST", "/admin/plan/rearm").status, 200);
    EXPECT_EQ(chat().pool(), "candidate");
    EXPECT_EQ(metric("sluice_plan_latched"), "0");
    EXPECT_EQ(metric("sluice_rollbacks_total{reason=\"manual\"}"), "1");
}

TEST_F(PlanServiceTest, ADamagedStateFileHoldsEverythingOnStable) {
    start(kSplit);
    std::ofstream(folder + "/plan.state") << "half of some";
    start(kSplit);
    EXPECT_EQ(chat().pool(), "stable");
    EXPECT_THAT(admin("GET", "/admin/status").json().at("plan").at("reason").as_string(),
                HasSubstr("can't be read"));
}

TEST_F(PlanServiceTest, AStateThatCannotBeWrittenHoldsEverythingOnStable) {
    fs::create_directory(folder + "/plan.state.new");  // Where it would be written.
    start(kSplit);
    EXPECT_EQ(chat().pool(), "stable");
}

TEST_F(PlanServiceTest, ARollbackThatCannotBeWrittenHoldsAndIsAnError) {
    start(kSplit);
    fs::create_directory(folder + "/plan.state.new");
    EXPECT_EQ(admin("POST", "/admin/rollback").status, 500);
    EXPECT_EQ(chat().pool(), "stable");
}

TEST_F(PlanServiceTest, ACandidateThatIsNotReadyIsNotWaitedFor) {
    candidate.ready = false;
    start(kSplit);
    EXPECT_EQ(chat().pool(), "stable");
}

// ---- Shadows --------------------------------------------------------------------------------------

TEST_F(PlanServiceTest, AnEqualCopyIsTheSameByTextTokensAndLogprobs) {
    start(kShadow);
    const Reply reply = chat();
    EXPECT_EQ(reply.pool(), "stable");
    run_until([this] { return shadows("same") == "1"; });
    ASSERT_EQ(candidate.answers.size(), 1U);
    EXPECT_EQ(candidate.answers[0].sampling_params, stable.answers[0].sampling_params);
    EXPECT_LT(candidate.answers[0].priority, stable.answers[0].priority);
    EXPECT_EQ(stable.scorings + candidate.scorings, 2U);
    EXPECT_EQ(service->controller().copies_running("candidate"), 0U);
}

TEST_F(PlanServiceTest, ADifferentCopyIsSeen) {
    candidate.say("Lyon.");
    start(kShadow);
    (void)chat();
    run_until([this] { return shadows("differs") == "1"; });
}

TEST_F(PlanServiceTest, AnotherModelIsSeenByItsLogprobsThoughTheTextIsTheSame) {
    candidate.logprob = -0.9F;
    start(kShadow);
    (void)chat();
    run_until([this] { return shadows("differs") == "1"; });
}

TEST_F(PlanServiceTest, ACandidateThatHangsDelaysNobodyAndItsBudgetIsKept) {
    candidate.holding = true;
    start(
        "[plan]\nstable = \"stable\"\n[[plan.shadow]]\npool = \"candidate\"\nshare = 1\n"
        "max_concurrent = 2\n");
    for (int i = 0; i < 5; ++i) EXPECT_EQ(chat().status, 200);
    run_until([this] { return candidate.answers.size() == 2; });
    EXPECT_EQ(shadows("dropped_budget"), "3");
    candidate.release();
    run_until([this] { return shadows("same") == "2"; });
}

TEST_F(PlanServiceTest, ARollbackEndsTheCopiesThatRun) {
    candidate.holding = true;
    start(kShadow);
    EXPECT_EQ(chat().status, 200);
    run_until([this] { return candidate.answers.size() == 1; });
    ASSERT_EQ(admin("POST", "/admin/rollback").status, 200);
    run_until([this] { return candidate.gone == 1; });
    EXPECT_EQ(shadows("rolled_back"), "1");
    EXPECT_EQ(chat().status, 200);
    EXPECT_EQ(candidate.answers.size(), 1U);
}

TEST_F(PlanServiceTest, TheStablePoolCanShadowItself) {
    start("[plan]\nstable = \"stable\"\n[[plan.shadow]]\npool = \"stable\"\nshare = 1\n");
    (void)chat();
    run_until([this] { return shadows("same") == "1"; });
    EXPECT_EQ(stable.answers.size(), 2U);
}

// ---- Guards ---------------------------------------------------------------------------------------

TEST_F(PlanServiceTest, AGuardRollsACandidateBackThatDiffers) {
    candidate.say("Lyon.");
    start(std::string(kShadow) +
          "[[plan.guard]]\npool = \"candidate\"\nmetric = \"differs_share\"\nmax = 0.05\n"
          "min_samples = 10\n");
    run_until([this] {
        (void)chat();
        return service->controller().latched();
    });
    const json::value plan = admin("GET", "/admin/status").json().at("plan");
    EXPECT_THAT(plan.at("reason").as_string(), HasSubstr("differs_share of candidate is 100 %"));
    EXPECT_EQ(metric("sluice_rollbacks_total{reason=\"differs_share\"}"), "1");
    EXPECT_THAT(audit(), HasSubstr(R"("who":"guard","what":"rollback")"));
}

}  // namespace
}  // namespace sluice::gateway
