#pragma once

// One request for tokens from its arrival to its end: prepared, queued, given to a worker, pumped to
// the client. It ends exactly once, in one of the outcomes, and then holds nothing: no worker, no
// timer, no place in the queue.
//
// Before the first token a failed leg is started again elsewhere. After it, the stream goes on where
// it stopped: the new worker is given the journal of tokens and continues bit for bit, because a
// native engine's tokens depend on the request alone. A worker of another model is not asked. Two
// losses in a row without a new token end the request.
//
// Belongs to the event loop's thread.

#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "adapters/native_leg.h"
#include "gateway/answer_writer.h"
#include "gateway/gateway_probe.h"
#include "gateway/request_preparer.h"
#include "gateway/token_pump.h"
#include "gateway/worker_set.h"
#include "net/event_loop.h"
#include "net/http_server.h"

namespace sluice::gateway {

class Generation;

/// What all requests of a pool share.
struct GenerationServices {
    net::EventLoop& loop;
    net::HttpClient& client;
    WorkerSet& workers;
    GatewayProbe& probe;
    const RequestPreparer& preparer;
    std::string pool;
    /// Puts a request into the queue of those that wait for a worker; false if it is full.
    std::function<bool(std::shared_ptr<Generation>)> wait_for_worker;
    /// Called once, as the very last thing.
    std::function<void(Generation&)> on_done;
};

/// What the headers of a request ask for.
struct RequestHeaders {
    std::string request_id;
    std::chrono::milliseconds deadline{};
};

class Generation : public std::enable_shared_from_this<Generation> {
public:
    Generation(GenerationServices& services, std::shared_ptr<net::HttpExchange> exchange,
               RequestHeaders headers);

    /// Watches the client and the deadline from now on.
    void start();
    void on_prepared(std::expected<PreparedRequest, protocol::ApiError> prepared);
    /// A worker may be ready: tries to get one.
    void seek_worker();
    /// The service stops.
    void abandon();

private:
    enum class Phase : std::uint8_t { kQueue, kPrefill, kDecode };

    void start_leg(Assignment assignment);
    [[nodiscard]] port::GenerateRequest port_request(std::uint32_t max_new_tokens) const;
    [[nodiscard]] bool same_arithmetic(const port::ServerInfo& info) const;
    void on_frame(const port::GenerateFrame& frame);
    void measure(const port::GenerateFrame& frame);
    void on_leg_error(const Error& error);
    void end_leg();
    void fail(const protocol::ApiError& error, Outcome outcome);
    void on_deadline();
    void finish(Outcome outcome);
    [[nodiscard]] net::HttpHeaders answer_headers() const;

    GenerationServices& services_;
    std::shared_ptr<net::HttpExchange> exchange_;
    RequestHeaders headers_;
    std::chrono::steady_clock::time_point arrival_;
    std::chrono::steady_clock::time_point last_token_;
    std::chrono::steady_clock::time_point last_write_;
    net::Timer deadline_;
    net::Timer resume_deadline_;

    std::string id_;  ///< What clients call the answer.
    PreparedRequest request_;
    RequestClass class_;
    std::uint64_t seed_ = 0;
    std::unique_ptr<AnswerWriter> writer_;
    std::unique_ptr<TokenPump> pump_;

    Assignment assignment_;
    std::unique_ptr<adapters::NativeLeg> leg_;
    std::uint32_t losses_ = 0;  ///< Since the last new token.
    std::string arithmetic_;    ///< Fingerprint and numerics of the first worker.
    Phase phase_ = Phase::kQueue;
    bool done_ = false;
};

}  // namespace sluice::gateway
