#pragma once

// Writes what an engine's pool has into the log of what this worker has.

#include <string_view>

#include "engine/block_observer.h"
#include "engine/engine.h"
#include "kvnode/kv_event_feed.h"
#include "kvnode/kv_event_log.h"

namespace sluice::worker {

class PoolEvents final : public engine::BlockObserver {
public:
    static constexpr std::string_view kTier = "pool";

    explicit PoolEvents(kvnode::KvEventLog& log) : log_(log) {}
    void stored(const kv::NamedBlock& block) override {
        log_.stored({.block = block, .tier = kTier});
    }
    void removed(const kv::BlockKey& key) override { log_.removed(key); }

private:
    kvnode::KvEventLog& log_;
};

/// What the pool of `engine` has. Both outlive what is returned.
[[nodiscard]] kvnode::KvEventFeed::Source pool_snapshots(engine::Engine& engine,
                                                         const kvnode::KvEventLog& log);

}  // namespace sluice::worker
