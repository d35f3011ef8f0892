#pragma once

// Follows what each cache node holds, as far as nodes say so: a worker that lacks a prompt's prefix can
// load it from there, so that nobody has to wait for the one that has it.
//
// Belongs to the event loop's thread.

#include <map>
#include <memory>
#include <string>

#include "gateway/kv_event_feed.h"
#include "gateway/kv_members.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "routing/registry.h"

namespace sluice::gateway {

class KvNodeFeeds {
public:
    /// All outlive this.
    KvNodeFeeds(net::EventLoop& loop, net::HttpClient& client, routing::Registry& registry,
                RoutingProbe& probe, const KvMembers& members);
    ~KvNodeFeeds();
    KvNodeFeeds(const KvNodeFeeds&) = delete;
    KvNodeFeeds& operator=(const KvNodeFeeds&) = delete;

    /// From now on, whatever becomes of the list.
    void start();

private:
    struct Followed {
        routing::WorkerIndex store = 0;
        std::unique_ptr<KvEventFeed> feed;
    };
    void look();

    net::EventLoop& loop_;
    net::HttpClient& client_;
    routing::Registry& registry_;
    RoutingProbe& probe_;
    const KvMembers& members_;
    std::uint64_t epoch_ = 0;
    std::map<std::string, Followed> followed_;  ///< By the node's address for this.
    net::Timer next_;
};

}  // namespace sluice::gateway
