#pragma once

// Follows what the cache of one worker holds, and tells the prefix index: it asks GET /kv_events,
// which answers as soon as there is something new, and asks again.
//
// The first question, and one whose answer begins anew (another process, too far behind), is answered
// by all the worker has. What a worker says may still be wrong, so now and then all of it is read
// again. A worker that knows no such thing is asked rarely; what it holds is then guessed from what
// it was sent.
//
// Belongs to the event loop's thread.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/routing_probe.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "port/kv_events.h"
#include "routing/registry.h"

namespace sluice::gateway {

struct KvEventFeedOptions {
    std::uint32_t rank = 0;                      ///< Of a worker with several engines.
    std::chrono::milliseconds wait{20'000};      ///< How long the worker may keep an answer.
    std::chrono::milliseconds pause{1'000};      ///< After an answer that made no sense.
    std::chrono::milliseconds rarely{60'000};    ///< Between questions to one that knows no events.
    std::chrono::milliseconds refresh{600'000};  ///< After so long all is read again.
};

class KvEventFeed {
public:
    KvEventFeed(net::EventLoop& loop, net::HttpClient& client, routing::Registry& registry,
                RoutingProbe& probe, std::string url, routing::WorkerIndex worker,
                const KvEventFeedOptions& options = {});
    ~KvEventFeed();
    KvEventFeed(const KvEventFeed&) = delete;
    KvEventFeed& operator=(const KvEventFeed&) = delete;

    /// From the start: the worker became ready, and may be another process.
    void start();

private:
    void begin_anew(std::string_view reason);
    void ask();
    void ask_after(std::chrono::milliseconds pause);
    void on_answer(int status);
    void on_page(const port::KvEventPage& page);
    void apply(const port::KvEvent& event);
    void lost(std::string_view reason);

    net::EventLoop& loop_;
    net::HttpClient& client_;
    routing::Registry& registry_;
    RoutingProbe& probe_;
    const std::string url_;
    const routing::WorkerIndex worker_;
    const KvEventFeedOptions options_;
    port::KvEventQuery query_;
    std::unique_ptr<net::HttpCall> call_;
    std::string body_;  ///< Bounded; what is cut off is not valid JSON any more.
    net::Timer next_;
    std::chrono::steady_clock::time_point refresh_at_;
    std::vector<routing::BlockHash> hashes_;  ///< Scratch.
};

}  // namespace sluice::gateway
