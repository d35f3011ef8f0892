#include "worker/pool_events.h"

#include <utility>

namespace sluice::worker {

kvnode::KvEventFeed::Source pool_snapshots(engine::Engine& engine, const kvnode::KvEventLog& log) {
    return [&engine, &log](std::function<void(kvnode::KvEventFeed::Snapshot)> done) {
        engine.with_blocks([&log, done = std::move(done)](engine::BlockDesk& desk) {
            kvnode::KvEventFeed::Snapshot snapshot{.next = log.next(), .blocks = {}};
            for (const kv::NamedBlock& block : desk.named_blocks())
                snapshot.blocks.push_back({.block = block, .tier = PoolEvents::kTier});
            done(std::move(snapshot));
        });
    };
}

}  // namespace sluice::worker
