#pragma once

// Everything outside of the engines' pools where this worker keeps blocks: its own memory, cache nodes,
// shared directories. On the loop's thread.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/task_pool.h"
#include "kv/dram_tier.h"
#include "kvnode/node_cluster.h"
#include "net/event_loop.h"
#include "worker/block_places.h"
#include "worker/kv_options.h"
#include "worker/kv_tiers.h"

namespace sluice::worker {

class KvCache {
public:
    KvCache(net::EventLoop& loop, const KvOptions& options);

    /// Opens the stores that the options name; once. Errors name the one that can't be used.
    [[nodiscard]] Result<void> open_stores();

    /// From now on these are the cache nodes. `kOutOfRange`: an epoch that isn't newer; `kInvalid`: a
    /// URL that can't be used. Errors change nothing.
    [[nodiscard]] Result<void> set_nodes(std::uint64_t epoch, const std::vector<std::string>& urls);
    /// 0: the nodes are those of the start.
    [[nodiscard]] std::uint64_t nodes_epoch() const { return epoch_; }

    /// Each hears of what is in memory, which all ranks share. Before anything is; they outlive this.
    void tell(std::vector<BlockPlaces*> places) { places_ = std::move(places); }

    [[nodiscard]] KvTiers& tiers() { return tiers_; }
    [[nodiscard]] TaskPool& tasks() { return tasks_; }
    /// Null if this worker keeps nothing in its memory.
    [[nodiscard]] kv::DramTier* dram() { return dram_.get(); }

private:
    void make_memory();
    KvTier& add_tier(std::string name, std::unique_ptr<kvnode::BlockStore> store,
                     const kv::TierSpeed& speed);
    void sweep();

    net::EventLoop& loop_;
    const KvOptions options_;
    std::vector<BlockPlaces*> places_;
    std::unique_ptr<kv::DramTier> dram_;
    TaskPool tasks_;  ///< Reads and writes `dram_`.
    KvTiers tiers_;
    kvnode::NodeCluster* nodes_ = nullptr;  ///< Among `tiers_`.
    KvTier* node_tier_ = nullptr;
    std::map<std::string, std::string> passwords_;  ///< URLs with theirs, by those without.
    std::uint64_t epoch_ = 0;
    net::Timer sweep_;
};

}  // namespace sluice::worker
