// `sluice gate` and `sluice bench load` against a server whose answers a test writes.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "app/command.h"
#include "base/limits.h"
#include "net/event_loop.h"
#include "net/http_server.h"
#include "tests/app/run_sluice.h"

namespace sluice::app {
namespace {

using testing::HasSubstr;
using Exchange = std::shared_ptr<net::HttpExchange>;

/// Says the length of what it was asked; every `lie_every`-th chat answer is another one.
class ModelStandIn {
public:
    explicit ModelStandIn(int lie_every = 0) {
        server_ = *net::HttpServer::listen(loop_, {}, [this, lie_every](const Exchange& exchange) {
            const std::string& path = exchange->request().path;
            if (path == "/v1/models") {
                return exchange->respond(
                    net::HttpResponse::json(200, R"({"data":[{"id":"stand-in"}]})"));
            }
            if (path == "/version")
                return exchange->respond(net::HttpResponse::json(200, R"({"version":"0.11.2"})"));
            const bool lies = lie_every > 0 && ++answers_ % lie_every == 0;
            net::HttpResponse response{.status = 200};
            response.headers.set("Content-Type", "text/event-stream");
            response.body =
                "data: {\"choices\":[{\"delta\":{\"content\":\"" +
                std::to_string(exchange->request().body.size()) + (lies ? "!" : "") +
                "\"},\"finish_reason\":\"stop\"}]}\n\n"
                "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":200,\"completion_tokens\":1}}"
                "\n\ndata: [DONE]\n\n";
            exchange->respond(std::move(response));
        });
        url_ = "http://127.0.0.1:" + std::to_string(server_->port());
        thread_ = std::thread([this] { loop_.run(); });
    }
    ~ModelStandIn() {
        loop_.stop();
        thread_.join();
    }
    ModelStandIn(const ModelStandIn&) = delete;
    ModelStandIn& operator=(const ModelStandIn&) = delete;

    [[nodiscard]] const std::string& url() const { return url_; }

private:
    net::EventLoop loop_;
    std::unique_ptr<net::HttpServer> server_;
    std::string url_;
    int answers_ = 0;
    std::thread thread_;
};

std::string content(const std::string& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

constexpr std::string_view kPrompts = R"({"id":"a","prompt":"One"}
{"id":"b","messages":[{"role":"user","content":"two"}],"sampling_params":{"temperature":0}}
)";

TEST(GateCommandTest, CompatPassesWhereTheNativeEngineRunsAndRecordsTheMachine) {
    const TemporaryFile manifest("");
    const Outcome outcome = run_sluice({"gate", "compat", "--json", "--manifest", manifest.path()});
    EXPECT_EQ(outcome.code, kDone) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(R"("gate":"compat","passed":true)"));
    EXPECT_THAT(content(manifest.path()), HasSubstr(R"("machine":{"system":"Linux")"));
}

TEST(GateCommandTest, CompatFailsWhereDeepInferDoesNotRun) {
    // Whatever this machine is, it can't be asked to run another model than DeepInfer's one.
    const Outcome outcome =
        run_sluice({"gate", "compat", "--engine", "deepinfer", "--model", "other"});
    EXPECT_EQ(outcome.code, kFailed);
    EXPECT_THAT(outcome.out, HasSubstr("gate compat: failed"));
}

TEST(GateCommandTest, CompatAsksAServerForItsVersionAndModels) {
    const ModelStandIn server;
    const Outcome outcome = run_sluice(
        {"gate", "compat", "--engine", "vllm", "--url", server.url(), "--model", "stand-in"});
    EXPECT_EQ(outcome.code, kDone) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("0.11.2"));
    EXPECT_EQ(run_sluice({"gate", "compat", "--engine", "vllm", "--url", server.url(), "--model",
                          "another"})
                  .code,
              kFailed);
    EXPECT_EQ(run_sluice({"gate", "compat", "--engine", "vllm"}).code, kWrongUse);
}

TEST(GateCommandTest, ABaselineIsSavedAndComparedWithAServerAndWithAFile) {
    const ModelStandIn server;
    const TemporaryFile prompts{std::string(kPrompts)};
    const TemporaryFile baseline("");
    const Outcome saved = run_sluice({"gate", "baseline", "save", "--prompts", prompts.path(),
                                      "--url", server.url(), "--output", baseline.path()});
    EXPECT_EQ(saved.code, kDone) << saved.err;
    EXPECT_THAT(content(baseline.path()), HasSubstr(R"("model":"stand-in")"));

    EXPECT_EQ(
        run_sluice({"gate", "baseline", "compare", baseline.path(), "--url", server.url()}).code,
        kDone);
    const TemporaryFile offline(R"({"id":"a","text":"something else","finish_reason":"stop"})");
    const Outcome compared =
        run_sluice({"gate", "baseline", "compare", baseline.path(), "--from", offline.path()});
    EXPECT_EQ(compared.code, kFailed);
    EXPECT_THAT(compared.out, HasSubstr("differs: text from byte 0"));
    EXPECT_THAT(compared.out, HasSubstr("differs: no answer"));
}

TEST(GateCommandTest, VerifyFailsAServerThatAnswersOtherwiseAmongOthers) {
    const std::vector<std::string> rounds = {"--batch", "1,4", "--long", "50"};
    const auto verify = [&](const std::string& url) {
        std::vector<std::string> arguments = {"gate", "verify", "--url", url};
        arguments.insert(arguments.end(), rounds.begin(), rounds.end());
        return run_sluice(arguments);
    };
    const ModelStandIn honest;
    const Outcome passed = verify(honest.url());
    EXPECT_EQ(passed.code, kDone) << passed.out << passed.err;
    const ModelStandIn liar(11);
    EXPECT_EQ(verify(liar.url()).code, kFailed);
}

TEST(GateCommandTest, NobodyListeningIsAnErrorAndNoVerdict) {
    const Outcome outcome = run_sluice({"gate", "verify", "--url", "http://127.0.0.1:1"});
    EXPECT_EQ(outcome.code, kCannotStart);
    EXPECT_THAT(outcome.err, HasSubstr("127.0.0.1:1"));
}

constexpr std::string_view kOutside = R"([[pool]]
name = "outside"
engine = "openai"
url = "http://127.0.0.1:1/v1"
api_key_env = "SLUICE_TEST_POOL_KEY"
)";

TEST(GateCommandTest, ServiceListsGapsAndFailsWhileThereIsOne) {
    const TemporaryFile config{std::string(kOutside)};
    const std::vector<std::string> gate = {"gate", "service", "--config", config.path()};
    const Outcome outcome = run_sluice(gate);
    EXPECT_EQ(outcome.code, kFailed) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("fail  outside  no_spare_worker: "));
    EXPECT_THAT(outcome.out, HasSubstr(config.path() + ":4"));
    EXPECT_THAT(outcome.out, HasSubstr("it is so now: $SLUICE_TEST_POOL_KEY is not set here"));
    EXPECT_THAT(outcome.out, HasSubstr("gate service: failed"));
}

TEST(GateCommandTest, ServicePassesWhenTheTemplateIsFilledIn) {
    const TemporaryFile config{std::string(kOutside)};
    const auto gate = [&](const std::vector<std::string>& more) {
        std::vector<std::string> arguments = {"gate", "service", "--config", config.path()};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run_sluice(arguments, {"SLUICE_TEST_POOL_KEY=secret"});
    };
    const Outcome skeleton = gate({"--template"});
    EXPECT_EQ(skeleton.code, kDone) << skeleton.err;
    std::string filled = skeleton.out;
    for (std::size_t at = 0; (at = filled.find("\"\"", at)) != std::string::npos; at += 3)
        filled.insert(at + 1, "x");
    const TemporaryFile owners(filled);
    const Outcome passed = gate({"--owners", owners.path(), "--json"});
    EXPECT_EQ(passed.code, kDone) << passed.out << passed.err;
    EXPECT_THAT(passed.out, HasSubstr(R"({"gate":"service","passed":true)"));
    EXPECT_THAT(passed.out, testing::Not(HasSubstr("secret")));
}

TEST(GateCommandTest, ServiceTellsTheMistakesOfAnOwnersFileByTheirLine) {
    const TemporaryFile owners("[[failure]]\nname = \"overlaod\"\n");
    const Outcome wrong = run_sluice({"gate", "service", "--owners", owners.path()});
    EXPECT_EQ(wrong.code, kWrongUse);
    EXPECT_THAT(wrong.err, HasSubstr(owners.path() + ":2: failure[0].name is no failure; did you "
                                                     "mean 'overload'?"));
    EXPECT_EQ(run_sluice({"gate", "service", "--owners", "/nowhere/owners.toml"}).code,
              kCannotStart);
}

TEST(GateCommandTest, ABaselineBeyondTheLimitIsRefused) {
    const TemporaryFile baseline("");
    std::filesystem::resize_file(baseline.path(), limits::kGateFileBytes + 1);
    const Outcome outcome =
        run_sluice({"gate", "baseline", "compare", baseline.path(), "--from", baseline.path()});
    EXPECT_EQ(outcome.code, kCannotStart);
    EXPECT_THAT(outcome.err, HasSubstr("holds more than"));
}

TEST(BenchLoadTest, ALoadEndsWithCountsAndTheCard) {
    const ModelStandIn server;
    const TemporaryFile rows("");
    const Outcome outcome = run_sluice({"bench", "load", "--url", server.url(), "--concurrency",
                                        "3", "--requests", "12", "--mix", "50/4,20/2:seeded",
                                        "--slo-ttft", "10s", "--output", rows.path(), "--json"});
    EXPECT_EQ(outcome.code, kDone) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(R"("requests":12,"succeeded":12)"));
    EXPECT_THAT(outcome.out, HasSubstr(R"("goodput_rps":)"));
    EXPECT_THAT(outcome.out, HasSubstr(R"("card":{"baseline":)"));
    const std::string lines = content(rows.path());
    EXPECT_EQ(std::ranges::count(lines, '\n'), 12);
    EXPECT_THAT(lines, HasSubstr(R"("kind":"seeded")"));
}

TEST(BenchLoadTest, WrongUseIsToldBeforeAnythingIsSent) {
    EXPECT_EQ(run_sluice({"bench", "load", "--mix", "nonsense"}).code, kWrongUse);
    EXPECT_EQ(run_sluice({"bench", "load", "--slo-ttft", "soon"}).code, kWrongUse);
    EXPECT_EQ(run_sluice({"bench", "load", "--url", "ftp://x"}).code, kWrongUse);
    EXPECT_EQ(run_sluice({"bench", "load", "--api-key-env", "SLUICE_TEST_NO_SUCH_KEY"}).code,
              kWrongUse);
    EXPECT_EQ(run_sluice({"bench", "load", "--trace", "/nowhere"}).code, kCannotStart);
    EXPECT_EQ(run_sluice({"bench", "load", "--url", "http://127.0.0.1:1"}).code, kCannotStart);
}

}  // namespace
}  // namespace sluice::app
