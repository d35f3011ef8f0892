// The endpoints beside /generate, what /generate refuses, and how a worker starts and stops.

#include "worker/worker_server.h"

#include <signal.h>

#include "port/load_report.h"
#include "port/port_error.h"
#include "port/server_info.h"
#include "tests/worker/support.h"
#include "worker/engine_process.h"

namespace sluice::worker {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using ::testing::HasSubstr;

port::PortError error_of(const HttpAnswer& answer) {
    const auto error = port::parse_port_error(answer.body);
    EXPECT_TRUE(error.has_value()) << answer.body;
    return error.value_or(port::PortError{});
}

class WorkerServerTest : public ::testing::Test {
protected:
    HttpAnswer get(std::string_view path) { return client_.fetch({.url = worker_.url(path)}); }
    HttpAnswer generate(std::string body) {
        return client_.fetch(post(worker_.url("/generate"), std::move(body)));
    }
    HttpAnswer generate(const port::GenerateRequest& request) {
        return generate(port::to_json(request));
    }

    TestWorker worker_{{.engine = {.pool_tokens = 4096, .running_max = 1, .waiting_max = 1}}};
    TestClient client_;
};

TEST_F(WorkerServerTest, AMalformedRequestIsToldItsPlace) {
    EXPECT_EQ(generate("{").status, 400);
    const HttpAnswer answer = generate(R"({"rid":")" + rid(1) + R"(","input_ids":[1,"x"]})");
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(error_of(answer).code, port::kInvalidRequest);
    EXPECT_EQ(error_of(answer).param, "input_ids[1]");
}

TEST_F(WorkerServerTest, WhatTheEngineRefusesIsToldInThePortsPlaces) {
    const port::PortError overflow = error_of(generate(request(1, 4000, 100)));
    EXPECT_EQ(overflow.code, port::kContextLengthExceeded);
    EXPECT_EQ(overflow.param, "sampling_params.max_new_tokens");
    EXPECT_THAT(overflow.message, HasSubstr("4096"));

    port::GenerateRequest strange = request(1, 3, 10);
    strange.input_ids[2] = 64;
    EXPECT_EQ(error_of(generate(strange)).param, "input_ids[2]");
    EXPECT_EQ(error_of(generate(strange)).code, port::kInvalidRequest);

    port::GenerateRequest resumed = request(1, 3, 10);
    resumed.resume_output_ids.assign(10, 5);
    EXPECT_EQ(error_of(generate(resumed)).param, "sluice.resume_output_ids");
}

TEST_F(WorkerServerTest, MoreLogprobsThanAFrameHoldsAreRefused) {
    port::GenerateRequest asked = request(1, 60'000, 1);
    asked.logprob_start_len = 0;
    asked.top_logprobs_num = 20;
    const HttpAnswer answer = generate(asked);
    EXPECT_EQ(answer.status, 400);
    EXPECT_EQ(error_of(answer).param, "logprob_start_len");
}

TEST_F(WorkerServerTest, AnIdThatRunsIsAConflictAndAFullQueueSaysWhenToComeBack) {
    worker_.gate.close();
    FrameReader running(worker_.port(), request(1, 10, 2));
    ASSERT_TRUE(worker_.gate.wait_until_held());
    const HttpAnswer conflict = generate(request(1, 10, 2));
    EXPECT_EQ(conflict.status, 409);
    EXPECT_EQ(error_of(conflict).code, port::kDuplicateRequest);

    FrameReader waiting(worker_.port(), request(2, 10, 2));
    EXPECT_THAT(waiting.head(), HasSubstr("200"));
    const HttpAnswer full = generate(request(3, 10, 2));
    EXPECT_EQ(full.status, 503);
    EXPECT_EQ(error_of(full).code, port::kQueueFull);
    EXPECT_TRUE(full.headers.find("retry-after").has_value());
    worker_.gate.open();
    EXPECT_EQ(running.rest().tokens().size(), 2U);
    EXPECT_EQ(waiting.rest().tokens().size(), 2U);
    EXPECT_EQ(generate(request(1, 10, 2)).status, 200);  // The id is free again.
}

TEST_F(WorkerServerTest, WrongPathsAndMethodsAreTold) {
    EXPECT_EQ(get("/nothing").status, 404);
    EXPECT_EQ(error_of(get("/nothing")).code, port::kNotFound);
    const HttpAnswer answer = get("/generate");
    EXPECT_EQ(answer.status, 405);
    EXPECT_EQ(answer.headers.find("allow"), "POST");
    EXPECT_EQ(client_.fetch(post(worker_.url("/ready"), "{}")).status, 405);
    EXPECT_EQ(client_.fetch({.method = "HEAD", .url = worker_.url("/health")}).status, 200);
}

TEST_F(WorkerServerTest, ReadinessCarriesTheLoad) {
    EXPECT_EQ(get("/health").status, 200);
    const HttpAnswer idle = get("/ready");
    EXPECT_EQ(idle.status, 200);
    const auto report = port::parse_load_report(idle.body);
    ASSERT_TRUE(report.has_value());
    EXPECT_GT(report->kv_peer_token_ns, 0U);
    EXPECT_EQ(*report, (port::LoadReport{.state = port::EngineState::kReady,
                                         .pid = static_cast<std::uint32_t>(::getpid()),
                                         .kv_peer_token_ns = report->kv_peer_token_ns}));

    worker_.gate.close();
    FrameReader running(worker_.port(), request(1, 100, 2));
    worker_.gate.allow();
    ASSERT_TRUE(running.next().has_value());
    const auto busy = port::parse_load_report(get("/ready").body);
    ASSERT_TRUE(busy.has_value());
    EXPECT_EQ(busy->running, 1U);
    EXPECT_EQ(busy->kv_used_share, 2.0F / 64.0F);
}

TEST_F(WorkerServerTest, ServerInfoSaysWhatTheEngineIs) {
    const auto info = port::parse_server_info(get("/server_info").body);
    ASSERT_TRUE(info.has_value());
    EXPECT_EQ(info->engine, "native");
    EXPECT_EQ(info->model, "Tiny");
    EXPECT_EQ(info->dialect, "deepseek-v4.1");
    EXPECT_EQ(info->fingerprint, tiny_model()->fingerprint());
    EXPECT_EQ(info->numerics_id, tiny_model()->numerics_id());
    EXPECT_EQ(info->tokenizer_digest, "t");
    EXPECT_EQ(info->version, "v");
    EXPECT_EQ(info->context_length, 4096U);
    EXPECT_EQ(info->pool_tokens, 4096U);
    EXPECT_GT(info->attention_tokens, 0U);
    EXPECT_EQ(info->block_tokens, 64U);
    EXPECT_EQ(info->vocabulary, 64U);
    EXPECT_EQ(info->max_running, 1U);
    EXPECT_EQ(info->max_waiting, 1U);
    ASSERT_EQ(info->kv_components.size(), 1U);
    port::KvComponent rows = info->kv_components.front();
    // Blocks of this build alone, unless it is told otherwise.
    EXPECT_EQ(info->kv_reuse, "exact");
    EXPECT_TRUE(rows.layout.starts_with("layer-major rows, build ")) << rows.layout;
    rows.layout.clear();
    EXPECT_EQ(rows, (port::KvComponent{.name = "mla", .dtype = "f32"}));
    EXPECT_GE(info->device_memory_bytes, tiny_model()->weight_bytes());
}

TEST_F(WorkerServerTest, MetricsCountWhatHappened) {
    EXPECT_EQ(generate(request(1, 200, 10)).status, 200);
    port::GenerateRequest again = request(1, 200, 10);
    again.rid = rid(2);
    EXPECT_EQ(generate(again).status, 200);
    ASSERT_TRUE(worker_.wait_until_idle());
    const HttpAnswer answer = get("/metrics");
    EXPECT_EQ(answer.headers.find("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    for (const char* line : {
             "sluice_engine_running 0",
             "sluice_engine_waiting 0",
             "sluice_engine_tokens_total{phase=\"prefill\"} 208",
             "sluice_engine_tokens_total{phase=\"decode\"} 18",
             "sluice_engine_cached_tokens_total{source=\"pool\"} 192",
             "sluice_engine_step_seconds_count 20",
             "sluice_kv_bytes{tier=\"pool\"} ",
             "sluice_kv_hits_total{tier=\"pool\"} 3",
             "sluice_kv_misses_total{tier=\"pool\"} 3",
             "sluice_kv_evictions_total{cause=\"space\"} 0",
             "process_resident_memory_bytes ",
         }) {
        EXPECT_THAT(answer.body, HasSubstr(line));
    }
}

TEST(WorkerServerLifeTest, AWorkerThatLoadsLivesButTakesNothing) {
    const auto worker = TestWorker::loading();
    TestClient client;
    const auto get = [&](std::string_view path) {
        return client.fetch({.url = worker->url(path)});
    };
    EXPECT_EQ(get("/health").status, 200);
    EXPECT_EQ(get("/metrics").status, 200);
    EXPECT_EQ(get("/ready").status, 503);
    EXPECT_EQ(port::parse_load_report(get("/ready").body)->state, port::EngineState::kLoading);
    EXPECT_EQ(get("/server_info").status, 503);
    const HttpAnswer answer =
        client.fetch(post(worker->url("/generate"), port::to_json(request(1, 2, 3))));
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(error_of(answer).code, port::kNotReady);
}

TEST(WorkerServerLifeTest, AWorkerThatStopsFinishesWhatRunsAndTakesNothingNew) {
    TestWorker worker;
    TestClient client;
    worker.gate.close();
    FrameReader running(worker.port(), request(1, 10, 5));
    ASSERT_TRUE(worker.gate.wait_until_held());
    Signal stopped;
    worker.thread().call(
        [&] { worker.server().stop(std::chrono::hours(1), [&] { stopped.set(); }); });
    EXPECT_EQ(client.fetch({.url = worker.url("/ready")}).status, 503);
    EXPECT_EQ(client.fetch(post(worker.url("/generate"), port::to_json(request(2, 2, 3)))).status,
              503);
    EXPECT_FALSE(stopped.is_set());
    worker.gate.open();
    EXPECT_EQ(running.rest().tokens(), engine_tokens(request(1, 10, 5)));
    EXPECT_TRUE(stopped.wait());
}

TEST(WorkerServerLifeTest, AfterTheGracePeriodWhatRunsIsAborted) {
    TestWorker worker;
    FrameReader running(worker.port(), request(1, 10, 50'000));
    ASSERT_TRUE(running.next().has_value());
    Signal stopped;
    worker.thread().call([&] { worker.server().stop(milliseconds(1), [&] { stopped.set(); }); });
    const Stream got = running.rest();
    ASSERT_TRUE(got.frames.back().finish_reason.has_value());
    EXPECT_EQ(got.frames.back().finish_reason->type, port::FinishType::kAbort);
    EXPECT_TRUE(stopped.wait());
    EXPECT_EQ(worker.stats().blocks_held, 0U);
}

TEST(WorkerServerLifeTest, AServerThatEndsInTheMiddleCutsItsStreams) {
    TestWorker worker;
    FrameReader running(worker.port(), request(1, 10, 50'000));
    ASSERT_TRUE(running.next().has_value());
    worker.close();
    const Stream got = running.rest();
    EXPECT_TRUE(got.frames.empty() || !got.frames.back().finish_reason.has_value());
}

test::TemporaryFile tiny_file() {
    return test::write_temporary(
        "process-tiny.gguf",
        test::random_model(test::tiny_hyper_parameters(), checkpoint::DataType::kF32, 5));
}

TEST(EngineProcessTest, ItListensLoadsAnswersAndStopsOnASignal) {
    Signal ready;
    std::uint16_t port = 0;
    WorkerOptions options;
    const auto model = tiny_file();
    options.model = model.path();
    options.engine.pool_tokens = 1024;
    options.on_ready = [&](std::uint16_t bound, const port::ServerInfo& info) {
        EXPECT_EQ(info.model, "Tiny");
        port = bound;
        ready.set();
    };
    Result<int> ended = 0;
    std::thread process([&] { ended = run_worker(options); });
    ASSERT_TRUE(ready.wait());
    TestClient client;
    const std::string url = "http://127.0.0.1:" + std::to_string(port);
    EXPECT_EQ(client.fetch({.url = url + "/ready"}).status, 200);
    const HttpAnswer answer =
        client.fetch(post(url + "/generate", port::to_json(request(1, 10, 5))));
    EXPECT_EQ(parse_stream(answer.body).tokens().size(), 5U);
    kill(getpid(), SIGTERM);
    process.join();
    EXPECT_EQ(ended, SIGTERM);
}

TEST(EngineProcessTest, WhatKeepsItFromStartingIsAnError) {
    net::testing::RawListener taken;
    WorkerOptions options;
    const auto model = tiny_file();
    options.model = model.path();
    options.port = taken.port();
    const auto busy = run_worker(options);
    ASSERT_FALSE(busy.has_value());
    EXPECT_EQ(busy.error().code(), ErrorCode::kIo);

    options.port = 0;
    options.engine.pool_tokens = 1;
    const auto senseless = run_worker(options);
    ASSERT_FALSE(senseless.has_value());
    EXPECT_EQ(senseless.error().place(), "pool_tokens");

    options.model = "/nowhere/model.gguf";
    EXPECT_FALSE(run_worker(options).has_value());
}

}  // namespace
}  // namespace sluice::worker
