#pragma once

// Carries out a load plan: closed loop (a fixed number of requests at a time, the next when one ends) or
// open loop (each at its time, whatever the server does).
//
// Threads: the loop's.

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "net/event_loop.h"
#include "net/http_client.h"
#include "trace/prompt_maker.h"
#include "trace/stream_call.h"

namespace sluice::trace {

struct LoadOptions {
    /// Requests at a time; 0 sends each at its planned time.
    std::size_t concurrency = 0;
    /// Of an open loop: requests beyond it fail without being sent.
    std::size_t open_max = 10'000;
};

struct LoadProgress {
    std::size_t planned = 0;
    std::size_t sent = 0;
    std::size_t ended = 0;
};

class LoadGenerator {
public:
    struct Events {
        std::function<void(const PlannedRequest&, const CallResult&)> on_result;
        std::function<void()> on_done;  ///< Once, after the last result; the last event.
    };

    LoadGenerator(net::EventLoop& loop, net::HttpClient& client, LoadTarget target,
                  PromptMaker prompts, std::vector<PlannedRequest> plan, LoadOptions options,
                  Events events);

    /// Events come later, never from inside.
    void start();
    /// Sends no more, and ends when the running requests have ended.
    void stop();

    [[nodiscard]] LoadProgress progress() const {
        return {.planned = plan_.size(), .sent = next_, .ended = ended_};
    }

private:
    void send_due();
    void send(std::size_t index, SteadyTime due);
    void on_end(std::size_t index, const CallResult& result);
    void finish_if_done();

    net::EventLoop& loop_;
    net::HttpClient& client_;
    LoadTarget target_;
    PromptMaker prompts_;
    std::vector<PlannedRequest> plan_;
    LoadOptions options_;
    Events events_;

    SteadyTime start_;
    net::Timer next_arrival_;
    net::Timer later_;
    std::map<std::size_t, std::unique_ptr<StreamCall>> open_;  ///< By index in the plan.
    std::size_t next_ = 0;
    std::size_t ended_ = 0;
    bool stopped_ = false;
};

}  // namespace sluice::trace
