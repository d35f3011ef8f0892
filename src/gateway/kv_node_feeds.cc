#include "gateway/kv_node_feeds.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace sluice::gateway {
namespace {

/// How soon a change of the list is noticed: what nodes hold only helps to choose.
constexpr std::chrono::milliseconds kLook{500};

}  // namespace

KvNodeFeeds::KvNodeFeeds(net::EventLoop& loop, net::HttpClient& client, routing::Registry& registry,
                         RoutingProbe& probe, const KvMembers& members)
    : loop_(loop), client_(client), registry_(registry), probe_(probe), members_(members) {}

KvNodeFeeds::~KvNodeFeeds() {
    for (auto& [http, followed] : followed_) {
        followed.feed.reset();
        registry_.remove(followed.store);
    }
}

void KvNodeFeeds::start() {
    look();
    next_ = loop_.call_after(kLook, [this] { start(); });
}

void KvNodeFeeds::look() {
    if (std::exchange(epoch_, members_.epoch()) == members_.epoch()) return;
    const std::vector<KvNode>& nodes = members_.nodes();
    for (auto each = followed_.begin(); each != followed_.end();) {
        if (std::ranges::find(nodes, each->first, &KvNode::http) != nodes.end()) {
            ++each;
            continue;
        }
        each->second.feed.reset();
        registry_.remove(each->second.store);
        each = followed_.erase(each);
    }
    for (const KvNode& node : nodes) {
        if (node.http.empty() || followed_.contains(node.http)) continue;
        const auto store = registry_.add_store();
        if (!store) {
            log::warn("what {} holds is not followed: {}", node.http, store.error().message());
            continue;
        }
        Followed& followed = followed_[node.http];
        followed.store = *store;
        followed.feed = std::make_unique<KvEventFeed>(loop_, client_, registry_, probe_, node.http,
                                                      *store, KvEventFeedOptions{});
        followed.feed->start();
    }
}

}  // namespace sluice::gateway
