#pragma once

// Leaves blocks of the engines' pools in the other tiers, behind everything else: some at a time, read
// and encoded on a thread of its own. Nobody waits for it. What doesn't fit into its queue, or into
// what a slow tier has yet to take, is left out, and computed again when somebody asks for it.
//
// Everything else on the loop's thread.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/task_pool.h"
#include "engine/engine.h"
#include "kv/block_value.h"
#include "net/event_loop.h"
#include "worker/kv_known.h"
#include "worker/kv_tiers.h"

namespace sluice::worker {

class KvPublisher {
public:
    struct Host {
        net::EventLoop& loop;
        KvTiers& tiers;
        TaskPool& tasks;
        /// What became of a block in a tier.
        std::function<void(const std::string& tier, kvnode::Stored)> on_stored;
        std::function<void(std::size_t blocks)> on_dropped;
    };
    /// What all values of an engine have in common; `engine` outlives the publisher.
    struct Origin {
        engine::Engine* engine = nullptr;
        Sha256Digest producer{};
    };
    struct Block {
        std::size_t index = 0;     ///< In its chain.
        bool is_computed = false;  ///< Here and now, not found somewhere.
    };

    explicit KvPublisher(Host host);

    /// The blocks are in the engine's pool, or will be left out. Those that a tier is known to have are
    /// only touched there.
    void publish(const Origin& origin, const kvnode::ChainPtr& chain, std::vector<Block> blocks);

    /// Blocks may lie elsewhere from now on: what is found next is left there again where it is missing.
    void forget_known();

    [[nodiscard]] bool idle() const { return !busy_ && jobs_.empty() && in_flight_ == 0; }

private:
    struct Job {
        Origin origin;
        kvnode::ChainPtr chain;
        std::vector<Block> blocks;  ///< Not done yet.
    };
    struct Encoded {
        Block block;
        kv::SharedBytes value;
    };
    using Batch = std::shared_ptr<std::vector<Encoded>>;
    struct Alive {};

    void touch_extents(const kvnode::ChainPtr& chain, const std::vector<Block>& blocks);
    void begin_job();
    void on_found_in_tier(std::size_t tier, const std::vector<std::optional<Retention>>& found);
    void next_batch();
    void encode(engine::BlockDesk::Found found, std::vector<Block> blocks);
    void store(const Batch& batch);
    void end_job();
    [[nodiscard]] bool wanted(const Block& block);
    [[nodiscard]] bool lacks(std::size_t tier, const kv::BlockKey& key,
                             std::chrono::steady_clock::time_point now);
    template <class Work>
    [[nodiscard]] std::function<void()> if_alive(Work work);

    Host host_;
    std::deque<Job> jobs_;  ///< The first is worked on while `busy_`.
    std::size_t waiting_ = 0;
    std::size_t finds_ = 0;
    std::size_t in_flight_ = 0;            ///< Values that tiers have yet to take.
    std::vector<KvKnown> known_;           ///< By tier: what it has, or refused.
    std::vector<std::size_t> tier_bytes_;  ///< In flight, by tier.
    bool busy_ = false;
    std::shared_ptr<Alive> alive_ = std::make_shared<Alive>();
};

}  // namespace sluice::worker
