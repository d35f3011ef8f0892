#pragma once

// One leg of a request on a worker that speaks the engine port: posts the request, reads frames,
// and tells apart what the gateway must treat differently (refused, full, gone, stalled).
//
// A leg ends with exactly one of `on_end`, `on_handover` and `on_error`, unless it is destroyed before; destroying
// it closes the connection, which makes the worker abort the request. Nothing is retried here.
//
// Threads: the loop's.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "net/http_client.h"
#include "port/generate.h"

namespace sluice::adapters {

/// How far a leg came that failed.
enum class Reached : std::uint8_t {
    kNobody,  ///< No worker has taken the request: what became of it is not the request's doing.
    kWorker,  ///< One has, and sent no frame.
    kFrames,
};

/// Each of them may destroy the leg.
struct LegEvents {
    std::function<void(const port::GenerateFrame& frame)> on_frame;
    /// After the frame with a finish reason.
    std::function<void()> on_end;
    /// In place of `on_frame` and `on_end`, for the frame that ends a prefill: its source's URL is the
    /// worker's if it named no other. Without it such a frame is corrupt.
    std::function<void(const port::GenerateFrame& frame)> on_handover;
    /// kInvalid and kOutOfRange (the context is too short): the request is wrong, with its place.
    /// kExhausted: the worker's queue is full. kUnavailable: not ready, no engine port, gone, or cut
    /// off before the end. kTimeout: silent for too long. kCorrupt: not what the port speaks.
    /// kInternal: a bug of the worker. kNotFound: a decode can't have the blocks it was to start from,
    /// and has brought no token.
    std::function<void(const Error& error, Reached reached)> on_error;
};

struct LegOptions {
    std::chrono::milliseconds connect_time{2'000};
    /// Until the worker has taken or refused the request.
    std::chrono::milliseconds head_time{10'000};
    /// Longest time without a frame; heartbeats are frames.
    std::chrono::milliseconds stall_time{15'000};
    std::string traceparent;  ///< Sent along if it is not empty.
};

class NativeLeg {
public:
    /// `worker_url` is "http://host:port". Events come later, never from inside `start`.
    [[nodiscard]] static std::unique_ptr<NativeLeg> start(net::HttpClient& client,
                                                          const std::string& worker_url,
                                                          port::GenerateRequest request,
                                                          LegEvents events,
                                                          const LegOptions& options = {});
    ~NativeLeg();
    NativeLeg(const NativeLeg&) = delete;
    NativeLeg& operator=(const NativeLeg&) = delete;

private:
    struct State;
    explicit NativeLeg(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

}  // namespace sluice::adapters
