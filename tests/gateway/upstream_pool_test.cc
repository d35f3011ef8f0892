// Pass-through pools, in front of upstreams that misbehave in every way the field knows.

#include "gateway/upstream_pool.h"

#include <linux/tcp.h>

#include "base/request_class.h"
#include "tests/gateway/gateway_fixture.h"
#include "tests/net/support.h"
#include "tests/support/certificates.h"
#include "tests/support/scripted_upstream.h"

namespace sluice::gateway {
namespace {

using End = ScriptedUpstream::End;

ScriptedUpstream::Script streams(std::vector<std::string> pieces, End end = End::kProper) {
    return ScriptedUpstream::streams(std::move(pieces), end);
}
ScriptedUpstream::Script answers(int status, std::string body, net::HttpHeaders headers = {}) {
    return ScriptedUpstream::answers(status, std::move(body), std::move(headers));
}

const std::string kDone = "data: [DONE]\n\n";
const std::string kUsage =
    R"(data: {"id":"c","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,)"
    R"("total_tokens":11,"prompt_tokens_details":{"cached_tokens":4}}})"
    "\n\n";
const std::string kHello = chat_event(R"({"role":"assistant","content":"Hel"})") +
                           chat_event(R"({"content":"lo"})") + chat_event("{}", "stop");
const std::string kBody =
    R"({"choices":[{"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],)"
    R"("usage":{"prompt_tokens":9,"completion_tokens":2}})";
constexpr std::string_view kStream = R"(,"stream":true)";

/// Keeps the reports.
class Reports final : public RequestObserver {
public:
    void on_dispatch(Generation& generation) override { generation.collect(); }
    void on_done(const Generation&, const RequestReport& report) override { all.push_back(report); }
    std::vector<RequestReport> all;
};

/// Lets everybody in, as one tenant and another in turn.
class TwoTenants final : public AdmissionGate {
public:
    void attach(std::function<std::optional<std::size_t>()>, metrics::Registry&) override {}
    void room_changed() override {}
    [[nodiscard]] std::size_t waiting() const override { return 0; }
    std::unique_ptr<AdmissionTicket> admit(const InboundRequest&, Decide decide) override {
        AdmissionVerdict verdict;
        verdict.tenant = ++requests_ % 2 == 1 ? "a" : "b";
        verdict.salt = verdict.tenant;
        decide(verdict);
        return nullptr;
    }

private:
    int requests_ = 0;
};

class UpstreamPoolTest : public GatewayTest {
protected:
    ScriptedUpstream& add(std::vector<ScriptedUpstream::Script> scripts) {
        upstreams.push_back(std::make_unique<ScriptedUpstream>(loop, std::move(scripts)));
        return *upstreams.back();
    }
    /// A gateway whose only pool passes through to all upstreams so far.
    void open(UpstreamPoolOptions pool = {}) {
        pool.name = "outside";
        for (const auto& upstream : upstreams) pool.urls.push_back(upstream->url());
        GatewayOptions options;
        options.upstream_pools = {std::move(pool)};
        options.observers = {reports};
        options.admission = admission;
        options.ca_file = ca_file;
        auto created = Gateway::create(loop, std::move(options));
        ASSERT_TRUE(created.has_value()) << created.error().to_string();
        gateway = std::move(*created);
        run_until([this] {
            return gateway->pools().registry().ready_in(0, std::chrono::steady_clock::now()) ==
                   ready_wanted;
        });
    }
    void open_one(std::vector<ScriptedUpstream::Script> scripts, UpstreamPoolOptions pool = {}) {
        add(std::move(scripts));
        open(std::move(pool));
    }
    [[nodiscard]] const RequestReport& last() const { return reports->all.back(); }

    std::shared_ptr<Reports> reports = std::make_shared<Reports>();
    std::vector<std::unique_ptr<ScriptedUpstream>> upstreams;
    std::uint32_t ready_wanted = 1;
    std::string ca_file;
    std::shared_ptr<AdmissionGate> admission;
};

TEST_F(UpstreamPoolTest, AnAnswerInOnePieceHasNoTimeBetweenTokens) {
    open_one({answers(200, kBody)});
    EXPECT_EQ(chat("").status, 200);
    EXPECT_EQ(last().completion_tokens, 2U);
    EXPECT_TRUE(last().ttft.has_value());
    EXPECT_FALSE(last().mean_gap.has_value());
}

TEST_F(UpstreamPoolTest, TextThatWasToBeJsonAndIsNoneIsAnInvalidOutput) {
    open_one({answers(200, kBody)});
    const Reply reply = chat(R"(,"response_format":{"type":"json_object"})");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, kBody) << "the client gets what there is";
    EXPECT_EQ(last().outcome, Outcome::kInvalidOutput);
}

TEST_F(UpstreamPoolTest, AStreamPassesByteForByte) {
    const std::string stream = ": hello\n\n" + kHello + kUsage + kDone;
    open_one({streams({stream})});
    const Reply reply = chat(R"(,"stream":true,"stream_options":{"include_usage":true})");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, stream);
    EXPECT_EQ(reply.headers.find("x-sluice-pool"), "outside");
    EXPECT_EQ(reply.headers.find("content-type"), "text/event-stream");
    EXPECT_EQ(last().outcome, Outcome::kOk);
    EXPECT_EQ(last().prompt_tokens, 9U);
    EXPECT_TRUE(last().prompt_counted);
    EXPECT_EQ(last().cached_tokens, 4U);
    EXPECT_EQ(last().completion_tokens, 2U);
    EXPECT_TRUE(last().ttft.has_value());
    EXPECT_EQ(last().answer->text, "Hello");
    EXPECT_EQ(last().answer->finish_reason, "stop");
}

TEST_F(UpstreamPoolTest, AnyChunkingGivesTheSameBytes) {
    const std::string stream =
        "\xEF\xBB\xBF"
        "data:{\"choices\":[{\"delta\":{\"content\":\"\xE4\xBD\xA0 [DONE]\"}}]}\r\n\r\n"
        "data: [DONE]\r\n\r\n";
    for (const std::size_t step : {1U, 2U, 3U, 7U, 1000U}) {
        upstreams.clear();
        open_one({ScriptedUpstream::streams_in_steps(stream, step)});
        EXPECT_EQ(chat(kStream).body, stream) << step;
        EXPECT_EQ(last().outcome, Outcome::kOk);
        EXPECT_EQ(last().answer->text, "\xE4\xBD\xA0 [DONE]");
        gateway.reset();
    }
}

TEST_F(UpstreamPoolTest, UsageThatOnlyWeAskedForIsOnlyOurs) {
    open_one({streams({kHello, kUsage, kDone})});
    EXPECT_EQ(chat(kStream).body, kHello + kDone);
    EXPECT_EQ(last().prompt_tokens, 9U);
    EXPECT_NE(upstreams[0]->requests[0].body.find(R"("include_usage":true)"), std::string::npos);
}

TEST_F(UpstreamPoolTest, AsAskedLeavesBodyAndStreamAlone) {
    open_one({streams({kHello, kUsage, kDone})}, {.usage = UsagePolicy::kAsAsked});
    EXPECT_EQ(chat(kStream).body, kHello + kUsage + kDone);
    EXPECT_EQ(upstreams[0]->requests[0].body, body(kStream));
}

TEST_F(UpstreamPoolTest, EachTenantsSaltGoesAlongWhereTheEngineTakesOne) {
    admission = std::make_shared<TwoTenants>();
    open_one({answers(200, kBody)}, {.isolation = CacheIsolation::kSalt});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(chat("").status, 200);
    std::vector<std::string> salts;
    for (const auto& request : upstreams[0]->requests)
        salts.push_back(json::value_to<std::string>(json::parse(request.body).at("cache_salt")));
    EXPECT_NE(salts[0], salts[1]);
    EXPECT_EQ(salts[0], salts[2]);
}

TEST_F(UpstreamPoolTest, WhereTenantsMayShareTheBodyStaysTheClients) {
    admission = std::make_shared<TwoTenants>();
    open_one({answers(200, kBody)}, {.isolation = CacheIsolation::kShared});
    EXPECT_EQ(chat("").status, 200);
    EXPECT_EQ(upstreams[0]->requests[0].body, body(""));
}

const std::string kTraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST_F(UpstreamPoolTest, TheBodyIsTheClientsButForTheModelsName) {
    open_one({answers(200, kBody)},
             {.api_key = "ours", .model = "krill", .upstream_model = "org/Krill"});
    const Reply reply =
        chat(R"(,"unknown" : [1.50, {"x":null}])", {{"Authorization", "Bearer theirs"},
                                                    {"Cookie", "c"},
                                                    {"X-Api-Key", "k"},
                                                    {"traceparent", kTraceParent},
                                                    {"x-sluice-class", "chat"},
                                                    {"x-request-id", "mine"},
                                                    {"Accept-Encoding", "gzip"}});
    EXPECT_EQ(reply.body, kBody);
    const net::HttpRequest& sent = upstreams[0]->requests[0];
    EXPECT_EQ(sent.path, "/v1/chat/completions");
    EXPECT_EQ(sent.body, R"({"model":"org/Krill","messages":[{"role":"user","content":"Hi"}],)"
                         R"("unknown" : [1.50, {"x":null}]})");
    EXPECT_EQ(sent.headers.find("authorization"), "Bearer ours");
    const std::string traced(sent.headers.find("traceparent").value_or(""));
    EXPECT_EQ(traced.substr(0, 36), kTraceParent.substr(0, 36)) << "the client's trace goes on";
    EXPECT_NE(traced, kTraceParent) << "in a span of its own";
    EXPECT_EQ(sent.headers.find("x-request-id"), "mine");
    for (const char* name : {"cookie", "x-api-key", "x-sluice-class", "accept-encoding"})
        EXPECT_FALSE(sent.headers.find(name).has_value()) << name;
    EXPECT_EQ(reply.headers.find("x-request-id"), "mine");
}

TEST_F(UpstreamPoolTest, ARenamedModelIsAnsweredByTheNameThatTheClientUsed) {
    const auto named = [](const std::string& event, const std::string& name) {
        return "id: 1\ndata: {\"model\": \"" + name + "\"," + event.substr(7);
    };
    const auto whole = [](const std::string& name) {
        return R"({"choices":[{"message":{"content":"\"model\":\"x\""},"finish_reason":"stop"}],)"
               R"("model":")" +
               name + R"(" , "usage":null})";
    };
    const std::string hello = chat_event(R"({"content":"Hello"})", "stop");
    open_one({streams({named(hello, "org/Krill") + kDone}), answers(200, whole("org/Krill"))},
             {.model = "krill", .upstream_model = "org/Krill"});
    EXPECT_EQ(chat(kStream).body, named(hello, "krill") + kDone);
    EXPECT_EQ(chat("").body, whole("krill"));
}

TEST_F(UpstreamPoolTest, WithoutARenamingTheAnswersNameIsTheUpstreams) {
    const std::string answer = R"({"choices":[{"message":{"content":"a"}}],"model":"krill-2026"})";
    open_one({answers(200, answer)}, {.model = "krill"});
    EXPECT_EQ(chat("").body, answer);
}

TEST_F(UpstreamPoolTest, AnHttpsUpstreamIsVerifiedByTheBundle) {
    net::testing::Certificates certificates;
    certificates.make("server");
    ca_file = certificates.ca_file();
    const auto identity =
        net::TlsIdentity::load(certificates.certificate("server"), certificates.key("server"));
    ASSERT_TRUE(identity.has_value());
    upstreams.push_back(std::make_unique<ScriptedUpstream>(
        loop, std::vector{streams({kHello, kDone}), answers(200, kBody)}, *identity));
    open();
    EXPECT_EQ(chat(kStream).body, kHello + kDone);
    EXPECT_EQ(chat("").body, kBody);
}

TEST_F(UpstreamPoolTest, AnUpstreamThatCanNotBeVerifiedIsLostAndSaysWhy) {
    net::testing::Certificates certificates;
    const net::testing::Certificates strangers;
    certificates.make("elsewhere", {.names = "DNS:elsewhere"});
    for (const std::string& trusted : {strangers.ca_file(), certificates.ca_file()}) {
        ca_file = trusted;
        const auto identity = net::TlsIdentity::load(certificates.certificate("elsewhere"),
                                                     certificates.key("elsewhere"));
        ASSERT_TRUE(identity.has_value());
        upstreams.clear();
        upstreams.push_back(
            std::make_unique<ScriptedUpstream>(loop, std::vector{answers(200, kBody)}, *identity));
        ready_wanted = 0;
        open();
        const auto says_why = [this] {
            return json::serialize(status()).find("its certificate is not accepted") !=
                   std::string::npos;
        };
        run_until(says_why);
        EXPECT_EQ(get("/ready").status, 503);
        EXPECT_TRUE(upstreams[0]->requests.empty());
        gateway.reset();
    }
}

TEST_F(UpstreamPoolTest, CompletionsAndModelsWorkToo) {
    open_one({answers(200, R"({"choices":[{"text":"Hello","finish_reason":"length"}]})")},
             {.model = "krill"});
    const Reply reply = send("POST", "/v1/completions", R"({"model":"krill","prompt":"x"})");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(upstreams[0]->requests[0].path, "/v1/completions");
    EXPECT_EQ(last().answer->text, "Hello");
    EXPECT_EQ(get("/v1/models").json().at("data").at(0).at("id"), "krill");
    const Reply unknown = send("POST", "/v1/completions", R"({"model":"other","prompt":"x"})");
    EXPECT_EQ(unknown.json().at("error").at("code"), "model_not_found");
}

TEST_F(UpstreamPoolTest, ToolCallsOfAStreamArePutTogether) {
    open_one(
        {streams({chat_event(R"({"tool_calls":[{"index":0,"id":"a","function":{"name":"f",)"
                             R"("arguments":""}}]})"),
                  chat_event(R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]})"),
                  chat_event(R"({"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]})"),
                  chat_event("{}", "tool_calls"), kDone})});
    static_cast<void>(chat(R"(,"stream":true,"tools":[{"type":"function"}])"));
    ASSERT_EQ(last().answer->tool_calls.size(), 1U);
    EXPECT_EQ(last().answer->tool_calls[0].name, "f");
    EXPECT_EQ(last().answer->tool_calls[0].arguments, R"({"x":1})");
    EXPECT_EQ(last().kind, RequestKind::kTools);
}

TEST_F(UpstreamPoolTest, TheHeadDoesNotWaitForAnEvent) {
    open_one({streams({}, End::kNever)});
    Reply reply;
    const auto call = begin_send(reply, "POST", "/v1/chat/completions", body(kStream));
    run_until([&] { return reply.status == 200; });
    EXPECT_TRUE(reply.body.empty());
}

TEST_F(UpstreamPoolTest, EventsThatCameTogetherLeaveInOneWrite) {
    std::string events;
    for (int i = 0; i < 20; ++i) events += chat_event(R"({"content":"word"})");
    open_one({streams({events + kDone})});
    const net::testing::RawSocket client(gateway->port());
    const std::string text = body(kStream);
    client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: " +
                std::to_string(text.size()) + "\r\n\r\n" + text);
    run_until([&] { return !reports->all.empty(); });
    EXPECT_EQ(last().completion_tokens, 20U);
    // On the loopback a write is a segment.
    tcp_info info{};
    socklen_t size = sizeof info;
    ASSERT_EQ(getsockopt(client.fd(), IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    EXPECT_LE(info.tcpi_data_segs_in, 2U) << "the head, and all events";
    EXPECT_GE(info.tcpi_data_segs_in, 1U);
}

TEST_F(UpstreamPoolTest, ConnectionsAreUsedAgain) {
    open_one({streams({kHello + kDone})});
    for (int i = 0; i < 5; ++i) EXPECT_EQ(chat(kStream).body, kHello + kDone);
    const std::string peer = upstreams[0]->requests.front().peer;
    for (const net::HttpRequest& request : upstreams[0]->requests) EXPECT_EQ(request.peer, peer);
}

TEST_F(UpstreamPoolTest, AStreamIsOverForTheClientOnceItsEndIsThere) {
    open_one({streams({kHello + kDone}, End::kNever)});
    const Reply reply = chat(kStream);
    EXPECT_TRUE(reply.done);
    EXPECT_EQ(reply.body, kHello + kDone);
    // The connection that says nothing more is given up soon.
    run_until([this] { return upstreams[0]->gone == 1 && gateway->live_requests() == 0; });
    EXPECT_EQ(last().outcome, Outcome::kOk);
    EXPECT_EQ(chat(kStream).body, kHello + kDone);
}

TEST_F(UpstreamPoolTest, WhatFollowsTheEndIsNobodys) {
    const std::string late = R"(data: {"error":{"message":"late"}})"
                             "\n\n";
    open_one({streams({kHello + kDone + late}), streams({kHello + kDone, late})});
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(chat(kStream).body, kHello + kDone);
        run_until([this] { return gateway->live_requests() == 0; });
        EXPECT_EQ(last().outcome, Outcome::kOk);
    }
}

TEST_F(UpstreamPoolTest, AStreamThatEndsEarlyEndsWithAnError) {
    for (const End end : {End::kProper, End::kCut}) {
        upstreams.clear();
        open_one({streams({chat_event(R"({"content":"Hel"})"), "data: {\"cho"}, end)});
        const Reply reply = chat(kStream);
        const auto events = reply.events();
        ASSERT_EQ(events.size(), 2U) << reply.body;
        EXPECT_EQ(json::parse(events[1]).at("error").at("code"), "upstream_error");
        EXPECT_FALSE(reply.cut);
        EXPECT_EQ(last().outcome, Outcome::kError);
        gateway.reset();
    }
}

TEST_F(UpstreamPoolTest, AFinishReasonIsAnEndEvenWithoutDone) {
    open_one({streams({kHello}, End::kCut)});
    EXPECT_EQ(chat(kStream).body, kHello);
    EXPECT_EQ(last().outcome, Outcome::kOk);
}

TEST_F(UpstreamPoolTest, AnErrorInsideAStreamIsPassedOnOnceAndIsAFailure) {
    const std::string error = "data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n";
    open_one({streams({error, kDone})});
    const Reply reply = chat(kStream);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, error);
    EXPECT_EQ(last().outcome, Outcome::kError);
    EXPECT_EQ(last().error_code, "upstream_error");
    EXPECT_EQ(upstreams[0]->requests.size(), 1U);
}

TEST_F(UpstreamPoolTest, WhatTheUpstreamRefusesIsPassedAsItIs) {
    const std::string refusal = R"({"error":{"message":"temperature?","param":"temperature"}})";
    for (const int status : {400, 404, 413, 422, 429}) {
        upstreams.clear();
        open_one({answers(status, refusal, {{"Retry-After", "7"}})});
        const Reply reply = chat(kStream);
        EXPECT_EQ(reply.status, status);
        EXPECT_EQ(reply.body, refusal);
        EXPECT_EQ(reply.headers.find("retry-after"), "7");
        EXPECT_EQ(upstreams[0]->requests.size(), 1U);
        EXPECT_EQ(last().status, status);
        gateway.reset();
    }
}

TEST_F(UpstreamPoolTest, OurKeyIsNotTheClientsBusiness) {
    open_one({answers(401, R"({"error":{"message":"bad key ours"}})")}, {.api_key = "ours"});
    const Reply reply = chat("");
    EXPECT_EQ(reply.status, 502);
    EXPECT_EQ(reply.json().at("error").at("code"), "upstream_error");
    EXPECT_EQ(gateway->pools().registry().ready_in(0, std::chrono::steady_clock::now()), 0U);
}

TEST_F(UpstreamPoolTest, BeforeTheFirstByteAnotherAddressIsTried) {
    for (const auto& broken :
         {answers(500, "oops"), answers(503, "{}"), ScriptedUpstream::hangs_up(),
          answers(200, "<html>"), answers(200, R"({"error":{"message":"no"}})")}) {
        upstreams.clear();
        add({broken});
        add({answers(200, kBody)});
        ready_wanted = 2;
        open();
        EXPECT_EQ(chat("").body, kBody);
        // Once more over a new connection, where the probe's had been waiting.
        EXPECT_LE(upstreams[0]->requests.size(), 2U);
        EXPECT_EQ(upstreams[1]->requests.size(), 1U);
        EXPECT_EQ(last().retries, 1U);
        EXPECT_EQ(last().legs.size(), 2U);
        EXPECT_NE(metrics().find("sluice_retries_total 1"), std::string::npos);
        gateway.reset();
    }
}

TEST_F(UpstreamPoolTest, AConnectionThatDiedWhileItWaitedIsNoFailure) {
    open_one({ScriptedUpstream::hangs_up(), answers(200, kBody)});
    EXPECT_EQ(chat("").body, kBody) << "the probe's connection had been waiting";
    EXPECT_EQ(upstreams[0]->requests.size(), 2U);
    EXPECT_EQ(last().retries, 0U);
}

TEST_F(UpstreamPoolTest, WithoutAnotherAddressItIsAnUpstreamError) {
    open_one({answers(500, R"({"error":{"message":"boom"}})")});
    const Reply reply = chat("");
    EXPECT_EQ(reply.status, 502);
    EXPECT_EQ(reply.json().at("error").at("code"), "upstream_error");
    EXPECT_NE(reply.body.find("boom"), std::string::npos);
    EXPECT_EQ(upstreams[0]->requests.size(), 1U);
}

TEST_F(UpstreamPoolTest, SilenceIsBoundedBeforeAndAfterTheFirstEvent) {
    const adapters::OpenAiLegOptions times{.first_time = std::chrono::milliseconds(80),
                                           .stall_time = std::chrono::milliseconds(40)};
    open_one({ScriptedUpstream::hangs(), streams({chat_event(R"({"content":"a"})")}, End::kNever)},
             {.times = times});
    EXPECT_EQ(chat(kStream).status, 502);
    const Reply reply = chat(kStream);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(json::parse(reply.events().back()).at("error").at("code"), "upstream_error");
    run_until([this] { return upstreams[0]->gone == 2; });
}

TEST_F(UpstreamPoolTest, AClientThatGoesEndsItsUpstreamRequest) {
    open_one({streams({chat_event(R"({"content":"a"})")}, End::kNever)});
    Reply reply;
    auto call = begin_send(reply, "POST", "/v1/chat/completions", body(kStream));
    run_until([&] { return !reply.body.empty(); });
    call.reset();
    run_until([this] { return upstreams[0]->gone == 1 && gateway->live_requests() == 0; });
    EXPECT_EQ(last().outcome, Outcome::kClientGone);
}

TEST_F(UpstreamPoolTest, SeveralFailuresInARowTakeAnAddressOut) {
    open_one({answers(500, "no")});
    for (int i = 0; i < 5; ++i) EXPECT_EQ(chat("").status, 502);
    EXPECT_EQ(gateway->pools().registry().ready_in(0, std::chrono::steady_clock::now()), 0U);
    EXPECT_EQ(get("/ready").status, 503);
}

TEST_F(UpstreamPoolTest, AClientsMistakesTakeNobodyOut) {
    open_one({answers(400, R"({"error":{"message":"no"}})")});
    for (int i = 0; i < 20; ++i) EXPECT_EQ(chat("").status, 400);
    EXPECT_EQ(gateway->pools().registry().ready_in(0, std::chrono::steady_clock::now()), 1U);
}

TEST_F(UpstreamPoolTest, WithoutModelsHealthIsAsked) {
    ScriptedUpstream& upstream = add({answers(200, kBody)});
    upstream.models_status = 404;
    open();
    EXPECT_GE(upstream.probes, 2U);
    EXPECT_EQ(chat("").status, 200);
}

TEST_F(UpstreamPoolTest, AnAddressHoldsNoMoreThanItIsSaidTo) {
    open_one({ScriptedUpstream::hangs(), answers(200, kBody)}, {.max_concurrency = 1});
    Reply first;
    Reply second;
    const auto a = begin_send(first, "POST", "/v1/chat/completions", body(""));
    run_until([this] { return upstreams[0]->requests.size() == 1; });
    const auto b = begin_send(second, "POST", "/v1/chat/completions", body(""));
    run_until([this] { return gateway->queued_requests() == 1; });
    EXPECT_EQ(upstreams[0]->requests.size(), 1U);
    upstreams[0]->exchanges[0]->respond(net::HttpResponse::json(200, kBody));
    run_until([&] { return first.done && second.done; });
    EXPECT_EQ(second.body, kBody);
}

TEST_F(UpstreamPoolTest, WhatIsNoJsonIsRefusedHere) {
    open_one({answers(200, kBody)});
    EXPECT_EQ(send("POST", "/v1/chat/completions", "{\"model\":").status, 400);
    EXPECT_EQ(
        send("POST", "/v1/chat/completions", R"({"stream":"yes"})").json().at("error").at("param"),
        "stream");
    EXPECT_TRUE(upstreams[0]->requests.empty());
}

}  // namespace
}  // namespace sluice::gateway
