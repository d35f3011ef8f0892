#pragma once

// What a node's tiers hold, as readers of its events see it: a block is in memory, else on the SSD,
// else gone. Only names of blocks count.
//
// Threads: the tiers' own call in, each in the order of its changes.

#include <atomic>
#include <functional>
#include <span>

#include "kv/dram_tier.h"
#include "kv/ssd_tier.h"
#include "kvnode/kv_event_feed.h"
#include "kvnode/kv_event_log.h"

namespace sluice::kvnode {

class NodeEvents {
public:
    explicit NodeEvents(std::size_t capacity) : log_(capacity) {}

    [[nodiscard]] kv::DramTier::Observer dram_observer();
    [[nodiscard]] std::function<void(std::span<const kv::SsdEvent>)> ssd_listener();

    /// The tiers that the above belong to; null: there is none, or no more.
    void watch(const kv::DramTier* dram, const kv::SsdTier* ssd);

    /// Any thread; takes as long as it takes to walk through both tiers.
    [[nodiscard]] KvEventFeed::Snapshot snapshot() const;

    [[nodiscard]] KvEventLog& log() { return log_; }

private:
    void on_ssd(const kv::SsdEvent& event);

    KvEventLog log_;
    std::atomic<const kv::DramTier*> dram_ = nullptr;
    std::atomic<const kv::SsdTier*> ssd_ = nullptr;
};

}  // namespace sluice::kvnode
