#pragma once

// One HTTP call whose answer is short and wanted in one piece, with a bound on its time and its size.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace sluice::discovery {

struct CollectedAnswer {
    int status = 0;
    std::string body;
};

class CollectedCall {
public:
    using OnAnswer = std::function<void(Result<CollectedAnswer> answer)>;

    /// `on_answer` is called once, later, unless this is destroyed before; it may destroy this. Errors
    /// are the connection's, `kTimeout` after `time`, `kExhausted` beyond `bytes_max`.
    CollectedCall(net::EventLoop& loop, net::HttpClient& client, net::ClientRequest request,
                  std::size_t bytes_max, std::chrono::milliseconds time, OnAnswer on_answer);
    ~CollectedCall();
    CollectedCall(const CollectedCall&) = delete;
    CollectedCall& operator=(const CollectedCall&) = delete;

private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace sluice::discovery
