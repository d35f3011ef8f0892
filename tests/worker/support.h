#pragma once

// A worker with a tiny random model behind a real socket, and clients that look at its frames.

#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "engine/engine.h"
#include "net/sse.h"
#include "port/generate.h"
#include "tests/net/support.h"
#include "tests/support/tiny_model.h"
#include "worker/worker_server.h"

namespace sluice::worker::testing {

using net::testing::kPatience;
using net::testing::LoopThread;
using net::testing::PendingCall;
using net::testing::RawSocket;
using net::testing::Signal;
using net::testing::TestClient;
using HttpAnswer = net::testing::Answer;
using std::chrono::milliseconds;

/// Long contexts, so that requests can be made to last.
inline std::shared_ptr<const engine::Model> random_model(checkpoint::DataType type,
                                                         std::uint64_t seed) {
    checkpoint::HyperParameters parameters = test::tiny_hyper_parameters();
    parameters.context_length = 65'536;
    const auto bytes = test::random_model(parameters, type, seed);
    auto loaded = engine::Model::load(test::write_temporary("worker-tiny.gguf", bytes));
    EXPECT_TRUE(loaded.has_value()) << (loaded ? "" : loaded.error().to_string());
    return *loaded;
}

/// The same for every test of a process.
inline std::shared_ptr<const engine::Model> tiny_model() {
    static const auto model = random_model(checkpoint::DataType::kF32, 5);
    return model;
}

/// Stops the engine's thread at the end of each step, before its outputs go out.
class StepGate {
public:
    void close() {
        const std::lock_guard lock(mutex_);
        open_ = false;
    }
    void open() {
        const std::lock_guard lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }
    /// Lets one step through.
    void allow() {
        const std::lock_guard lock(mutex_);
        ++allowed_;
        changed_.notify_all();
    }
    [[nodiscard]] bool wait_until_held() {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, kPatience, [this] { return held_; });
    }
    /// For EngineOptions::on_step.
    void pass() {
        std::unique_lock lock(mutex_);
        held_ = true;
        changed_.notify_all();
        changed_.wait(lock, [this] { return open_ || allowed_ > 0; });
        if (!open_) --allowed_;
        held_ = false;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = true;
    bool held_ = false;
    std::size_t allowed_ = 0;
};

class TestWorker {
public:
    struct Setup {
        engine::EngineOptions engine{.pool_tokens = 65'536};
        milliseconds heartbeat = std::chrono::hours(1);
        KvOptions kv{};
        std::size_t ranks = 1;
        std::shared_ptr<const engine::Model> model{};  ///< Null: `tiny_model`.
    };

    TestWorker() : TestWorker(Setup{}) {}
    explicit TestWorker(Setup setup) : TestWorker(setup, nullptr) {
        loop_.call([&] {
            setup.engine.on_step = [this](const engine::StepReport&) { gate.pass(); };
            const auto model = setup.model ? setup.model : tiny_model();
            EXPECT_TRUE(server_->serve(model, setup.engine, setup.ranks).has_value());
        });
    }
    /// Listens, but never gets its model.
    static std::unique_ptr<TestWorker> loading() {
        return std::unique_ptr<TestWorker>(new TestWorker(Setup{}, nullptr));
    }
    ~TestWorker() { close(); }

    void close() {
        gate.open();
        loop_.call([&] { server_.reset(); });
    }

    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] std::string url(std::string_view path = "") const {
        return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
    }
    [[nodiscard]] LoopThread& thread() { return loop_; }
    [[nodiscard]] WorkerServer& server() { return *server_; }
    [[nodiscard]] engine::EngineStats stats() {
        return loop_.call([&] { return server_->engine()->stats(); });
    }
    /// Sequences that wait to be fetched.
    [[nodiscard]] std::size_t holds() {
        return loop_.call([&] { return server_->holds(); });
    }
    [[nodiscard]] bool idle() {
        return loop_.call([&] {
            for (std::size_t rank = 0; server_->engine(rank) != nullptr; ++rank) {
                const engine::EngineStats now = server_->engine(rank)->stats();
                if (now.running + now.waiting + now.blocks_held > 0) return false;
            }
            return server_->holds() == 0;
        });
    }
    /// Waits until no request and no hold has anything; false if that does not come about.
    [[nodiscard]] bool wait_until_idle() {
        const auto end = std::chrono::steady_clock::now() + kPatience;
        while (std::chrono::steady_clock::now() < end) {
            if (idle()) return true;
            std::this_thread::yield();
        }
        return false;
    }
    /// Until nothing is on its way into other tiers.
    [[nodiscard]] bool wait_until_published() {
        const auto end = std::chrono::steady_clock::now() + kPatience;
        while (std::chrono::steady_clock::now() < end) {
            if (loop_.call([&] { return server_->published(); })) return true;
            std::this_thread::yield();
        }
        return false;
    }
    [[nodiscard]] bool wait_until_waiting(std::size_t count) {
        const auto end = std::chrono::steady_clock::now() + kPatience;
        while (std::chrono::steady_clock::now() < end) {
            if (stats().waiting == count) return true;
            std::this_thread::yield();
        }
        return false;
    }

    StepGate gate;

private:
    TestWorker(const Setup& setup, std::nullptr_t) {
        port_ = loop_.call([&] {
            auto server = WorkerServer::listen(loop_.loop(),
                                               {.http = {},
                                                .about = {.tokenizer_digest = "t", .version = "v"},
                                                .heartbeat = setup.heartbeat,
                                                .kv = setup.kv});
            EXPECT_TRUE(server.has_value());
            server_ = std::move(*server);
            return server_->port();
        });
    }

    LoopThread loop_;
    std::unique_ptr<WorkerServer> server_;
    std::uint16_t port_ = 0;
};

inline std::string rid(std::uint32_t number) {
    char text[port::kRidLength + 1];
    std::snprintf(text, sizeof text, "%032x", number);
    return text;
}

/// Sampled, so that every token depends on all before it, and never ends by itself.
inline port::GenerateRequest request(std::uint32_t number, std::size_t prompt,
                                     std::uint32_t max_new_tokens) {
    port::GenerateRequest result;
    result.rid = rid(number);
    for (std::size_t i = 0; i < prompt; ++i) {
        result.input_ids.push_back(static_cast<TokenId>(3 + (i * 31 + number * 7) % 61));
    }
    result.sampling_params.max_new_tokens = max_new_tokens;
    result.sampling_params.seed = number;
    result.sampling_params.ignore_eos = true;
    return result;
}

/// The tokens that the engine gives without any server.
inline std::vector<TokenId> engine_tokens(const port::GenerateRequest& request) {
    auto engine = engine::Engine::create(tiny_model(), {.pool_tokens = 65'536});
    EXPECT_TRUE(engine.has_value());
    std::vector<TokenId> tokens;
    engine::Request plain{.id = "a", .input_ids = request.input_ids};
    plain.sampling = request.sampling_params;
    EXPECT_TRUE((*engine)->submit(plain, [&](const engine::Output& output) {
        tokens.insert(tokens.end(), output.tokens.begin(), output.tokens.end());
    }));
    while ((*engine)->step()) {
    }
    return tokens;
}

inline net::ClientRequest post(const std::string& url, std::string body) {
    return {.method = "POST", .url = url, .headers = {}, .body = std::move(body)};
}

/// What a stream consisted of.
struct Stream {
    std::vector<port::GenerateFrame> frames;
    bool done = false;  ///< [DONE] was there, and last.

    [[nodiscard]] std::vector<TokenId> tokens() const {
        std::vector<TokenId> all;
        for (const port::GenerateFrame& frame : frames) {
            all.insert(all.end(), frame.output_ids.begin(), frame.output_ids.end());
        }
        return all;
    }
};

inline Stream parse_stream(std::string_view body) {
    Stream stream;
    net::SseParser parser;
    EXPECT_TRUE(parser.feed(body, [&stream](const net::SseParser::Event& event) {
        EXPECT_FALSE(stream.done);
        stream.done = event.data == "[DONE]";
        if (stream.done) return;
        auto frame = port::parse_generate_frame(event.data);
        ASSERT_TRUE(frame.has_value()) << event.data;
        stream.frames.push_back(std::move(*frame));
    }));
    return stream;
}

/// A client that reads frame by frame.
class FrameReader {
public:
    FrameReader(std::uint16_t port, const port::GenerateRequest& request, int receive_buffer = 0)
        : socket_(port, receive_buffer) {
        const std::string body = port::to_json(request);
        EXPECT_TRUE(socket_.send("POST /generate HTTP/1.1\r\nHost: worker\r\nContent-Length: " +
                                 std::to_string(body.size()) + "\r\n\r\n" + body));
    }
    [[nodiscard]] std::string head() { return socket_.read_until("\r\n\r\n"); }
    /// The next frame; nothing at the end.
    [[nodiscard]] std::optional<port::GenerateFrame> next() {
        const std::string text = socket_.read_until("\n\n");
        const std::size_t start = text.find("data: ");
        if (start == std::string::npos) return std::nullopt;
        const std::string data = text.substr(start + 6, text.size() - start - 8);
        if (data == "[DONE]") return std::nullopt;
        auto frame = port::parse_generate_frame(data);
        EXPECT_TRUE(frame.has_value()) << data;
        return frame ? std::optional(std::move(*frame)) : std::nullopt;
    }
    [[nodiscard]] Stream rest() {
        Stream stream;
        while (auto frame = next()) stream.frames.push_back(std::move(*frame));
        return stream;
    }
    void close() { socket_.close(); }

private:
    RawSocket socket_;
};

}  // namespace sluice::worker::testing
