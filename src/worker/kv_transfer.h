#pragma once

// What a worker needs to hand blocks over, to take them in and to keep them. Everything on the loop's thread.

#include <memory>
#include <unordered_map>

#include "net/http_client.h"
#include "worker/kv_cache.h"
#include "worker/kv_holds.h"
#include "worker/kv_options.h"
#include "worker/kv_pull_answer.h"
#include "worker/kv_releases.h"

namespace sluice::worker {

struct KvTransfer {
    KvTransfer(net::EventLoop& loop, const KvOptions& kv_options,
               std::function<void(KvHolds::End)> on_hold_end)
        : options(kv_options),
          client(loop),
          releases(client),
          holds(loop, kv_options.hold_time, std::move(on_hold_end)),
          cache(loop, kv_options) {}

    KvOptions options;
    net::HttpClient client;
    KvReleases releases;
    KvHolds holds;
    KvCache cache;
    /// Answers to /kv/pull that are under way; as many as there are connections.
    std::unordered_map<const KvPullAnswer*, std::shared_ptr<KvPullAnswer>> pulls{};
};

}  // namespace sluice::worker
