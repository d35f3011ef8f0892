#pragma once

// This worker's own memory as a place where blocks are kept (kvnode/block_store.h). Values never leave
// the process, so they are not checked again; lists of them are gone through on a thread of their own.

#include <memory>

#include "base/task_pool.h"
#include "kv/dram_tier.h"
#include "kvnode/block_store.h"
#include "net/event_loop.h"

namespace sluice::worker {

class DramStore final : public kvnode::BlockStore {
public:
    /// All outlive the store; `tasks` finishes what it was given before they go.
    DramStore(net::EventLoop& loop, TaskPool& tasks, kv::DramTier& tier);

    void find(kvnode::ChainPtr chain, kvnode::Deadline deadline, OnFound on_found) override;
    [[nodiscard]] std::unique_ptr<kvnode::Load> load(kvnode::ChainPtr chain,
                                                     std::vector<kvnode::FoundBlock> blocks,
                                                     kvnode::Deadline deadline, OnValue on_value,
                                                     std::function<void()> on_done) override;
    void store(kvnode::ChainPtr chain, std::size_t index, kv::SharedBytes value,
               OnStored on_stored) override;
    void touch(kvnode::ChainPtr chain, std::vector<kvnode::FoundBlock> blocks) override;
    [[nodiscard]] std::vector<kvnode::StoreStats> stats() const override;

private:
    struct Alive {};

    /// Calls `work` on the loop, if the store still lives.
    template <class Work>
    void post(Work work);

    net::EventLoop& loop_;
    TaskPool& tasks_;
    kv::DramTier& tier_;
    std::shared_ptr<Alive> alive_ = std::make_shared<Alive>();
};

}  // namespace sluice::worker
