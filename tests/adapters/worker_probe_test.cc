#include "adapters/worker_probe.h"

#include "tests/worker/support.h"

namespace sluice::adapters {
namespace {

using namespace worker::testing;  // NOLINT(google-build-using-namespace)
using net::testing::RawListener;
using net::testing::ScriptedServer;

/// What a probe started by `start(client, on_result)` brings.
template <class T, class Start>
Result<T> ask(Start start) {
    TestClient client;
    Signal answered;
    std::optional<Result<T>> result;
    std::unique_ptr<WorkerProbe> probe;
    client.thread().call([&] {
        probe = start(client.client(), [&](Result<T> answer) {
            EXPECT_FALSE(answered.is_set());
            result = std::move(answer);
            probe.reset();
            answered.set();
        });
    });
    EXPECT_TRUE(answered.wait());
    return client.thread().call([&] { return *result; });
}

Result<port::ServerInfo> info(const std::string& url, milliseconds time = kPatience) {
    return ask<port::ServerInfo>([&](net::HttpClient& client, auto on_result) {
        return WorkerProbe::info(client, url, on_result, time);
    });
}

Result<port::LoadReport> load(const std::string& url) {
    return ask<port::LoadReport>([&](net::HttpClient& client, auto on_result) {
        return WorkerProbe::load(client, url, on_result, kPatience);
    });
}

std::string answer(const std::string& body) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(WorkerProbeTest, AReadyWorkerSaysWhatAndHowItIs) {
    TestWorker worker;
    const auto got = info(worker.url());
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(got->model, "Tiny");
    const auto said = load(worker.url());
    ASSERT_TRUE(said.has_value());
    EXPECT_EQ(*said, (port::LoadReport{.state = port::EngineState::kReady,
                                       .pid = static_cast<std::uint32_t>(::getpid()),
                                       .kv_peer_token_ns = said->kv_peer_token_ns}));
}

TEST(WorkerProbeTest, AWorkerThatLoadsIsUnavailableAndSaysSo) {
    const auto worker = TestWorker::loading();
    const auto got = info(worker->url());
    ASSERT_FALSE(got.has_value());
    EXPECT_EQ(got.error().code(), ErrorCode::kUnavailable);
    EXPECT_EQ(load(worker->url())->state, port::EngineState::kLoading);
}

TEST(WorkerProbeTest, WhoIsNotThereOrSilentIsAnError) {
    std::string url;
    {
        const RawListener gone;
        url = gone.url("");
    }
    EXPECT_EQ(info(url).error().code(), ErrorCode::kUnavailable);
    const RawListener mute;
    EXPECT_EQ(info(mute.url(""), milliseconds(20)).error().code(), ErrorCode::kTimeout);
}

TEST(WorkerProbeTest, WhatCantBeReadIsAnError) {
    ScriptedServer confused({answer("<html>")});
    EXPECT_EQ(info(confused.url("")).error().code(), ErrorCode::kCorrupt);
    ScriptedServer endless({answer(std::string(1'000'000, ' ') + "{}")});
    EXPECT_EQ(info(endless.url("")).error().code(), ErrorCode::kCorrupt);
    ScriptedServer another({"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"});
    EXPECT_EQ(load(another.url("")).error().code(), ErrorCode::kUnavailable);
}

TEST(WorkerProbeTest, ADroppedProbeSaysNothing) {
    TestWorker worker;
    TestClient client;
    client.thread().call([&] {
        const auto probe = WorkerProbe::info(client.client(), worker.url(), [](auto) { FAIL(); });
    });
    EXPECT_EQ(client.fetch({.url = worker.url("/health")}).status, 200);
}

}  // namespace
}  // namespace sluice::adapters
