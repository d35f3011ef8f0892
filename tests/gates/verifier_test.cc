#include "gates/verifier.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "net/http_server.h"

namespace sluice::gates {
namespace {

using Exchange = std::shared_ptr<net::HttpExchange>;

/// A server that answers each prompt with a text of its own, on the verifier's loop.
class VerifierTest : public ::testing::Test {
protected:
    void serve(std::function<std::string(const std::string& body)> answer) {
        auto server = net::HttpServer::listen(
            loop_, {}, [this, answer = std::move(answer)](const Exchange& exchange) {
                bodies_.push_back(exchange->request().body);
                net::HttpResponse response{.status = 200};
                response.headers.set("Content-Type", "text/event-stream");
                response.body = "data: {\"choices\":[{\"delta\":{\"content\":\"" +
                                answer(exchange->request().body) +
                                "\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
                exchange->respond(std::move(response));
            });
        ASSERT_TRUE(server) << server.error().to_string();
        server_ = std::move(*server);
    }

    GateReport verify(VerifyOptions options) {
        Baseline baseline{.versions = "{}"};
        for (int i = 0; i < 5; ++i) {
            const std::string text = "say " + std::to_string(i);
            baseline.rows.push_back(
                {.prompt = {.id = std::to_string(i),
                            .messages = R"([{"role":"user","content":")" + text + R"("}])",
                            .sampling = R"({"seed":1})"},
                 .output = {.id = std::to_string(i),
                            .text = "said " + std::to_string(i),
                            .finish_reason = "stop"}});
        }
        Verifier verifier(
            loop_, client_,
            {.url = "http://127.0.0.1:" + std::to_string(server_->port()) + "/v1", .model = "m"},
            std::move(options), {});
        return verifier.verify(baseline);
    }

    /// "said 3" for a body that asks "say 3"; a length for the long prompts.
    static std::string honest(const std::string& body) {
        const std::size_t at = body.find("say ");
        if (at != std::string::npos && body.size() < 300) return "said " + body.substr(at + 4, 1);
        return std::to_string(body.size());
    }

    net::EventLoop loop_;
    net::HttpClient client_{loop_};
    std::unique_ptr<net::HttpServer> server_;
    std::vector<std::string> bodies_;
};

TEST_F(VerifierTest, AnHonestServerPassesEveryRound) {
    serve(honest);
    const GateReport report = verify({.batches = {1, 4}, .long_words = {200}});
    EXPECT_TRUE(report.passed()) << to_text(report);
    std::set<std::string> subjects;
    for (const GateItem& item : report.items) subjects.insert(item.subject);
    EXPECT_EQ(subjects, (std::set<std::string>{"after interruption", "batch 1", "batch 4",
                                               "long, 200 words, together"}));
    // Two rounds, the interrupted one, the one after it, and the long prompts twice.
    EXPECT_EQ(bodies_.size(), 4U * 5 + 2 * 4);
}

TEST_F(VerifierTest, AServerThatChangesItsMindUnderLoadFails) {
    int requests = 0;
    serve([&](const std::string& body) {
        return ++requests == 7 ? std::string("something else") : honest(body);
    });
    const GateReport report = verify({.batches = {1, 4}, .long_words = {}});
    EXPECT_FALSE(report.passed());
    EXPECT_NE(to_text(report).find("batch 4"), std::string::npos);
    EXPECT_NE(to_text(report).find("differs: text from byte 1"), std::string::npos)
        << to_text(report);
}

TEST_F(VerifierTest, AServerThatFailsIsAFailedRound) {
    serve(honest);
    const std::uint16_t port = server_->port();
    server_.reset();
    Verifier verifier(loop_, client_,
                      {.url = "http://127.0.0.1:" + std::to_string(port) + "/v1", .model = "m"},
                      {.batches = {2}, .long_words = {}, .interruption = false}, {});
    Baseline baseline{.rows = {{.prompt = {.id = "0", .prompt = "x", .sampling = "{}"}}}};
    const GateReport report = verifier.verify(baseline);
    EXPECT_FALSE(report.passed());
    EXPECT_NE(report.items[0].found.find("row 0"), std::string::npos) << report.items[0].found;
}

}  // namespace
}  // namespace sluice::gates
