#pragma once

// Answers GET /kv_events: events from the log at once or as soon as there are some,
// and a snapshot, page by page, for whoever is new or too far behind. One snapshot serves all readers
// as long as the log reaches back to it.
//
// Everything on the loop's thread.

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "base/limits.h"
#include "kvnode/kv_event_log.h"
#include "net/event_loop.h"
#include "net/http_server.h"
#include "port/kv_events.h"

namespace sluice::kvnode {

class KvEventFeed {
public:
    struct Snapshot {
        std::uint64_t next = 0;  ///< The first event that may not be in it.
        std::vector<TieredBlock> blocks;
    };
    /// Makes a snapshot of what there is, and hands it over on any thread: later, or at once.
    using Source = std::function<void(std::function<void(Snapshot)> done)>;

    /// `log` outlives this, and so does what `source` looks at.
    KvEventFeed(net::EventLoop& loop, Source source, KvEventLog& log,
                std::size_t page_keys = limits::kKvEventsAnswered);

    void answer(const port::KvEventQuery& query, std::shared_ptr<net::HttpExchange> exchange);

    /// Questions that wait for news are answered with what there is.
    void answer_all();

private:
    struct Waiter {
        std::shared_ptr<net::HttpExchange> exchange;
        std::uint64_t from = 0;
        net::Timer patience;
    };
    /// What callbacks look at first: gone with the feed.
    struct Alive {};

    void answer_with_snapshot(std::shared_ptr<net::HttpExchange> exchange);
    [[nodiscard]] port::KvEventPage page_of_snapshot(std::uint64_t start) const;
    void wait(std::shared_ptr<net::HttpExchange> exchange, std::uint64_t from,
              std::chrono::milliseconds patience);
    void listen();

    net::EventLoop& loop_;
    Source source_;
    KvEventLog& log_;
    std::size_t page_keys_;  ///< Most names in one answer.
    std::shared_ptr<const Snapshot> snapshot_;
    std::list<Waiter> waiters_;
    net::Timer gather_;
    bool listening_ = false;
    std::shared_ptr<Alive> alive_ = std::make_shared<Alive>();
};

}  // namespace sluice::kvnode
