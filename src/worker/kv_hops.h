#pragma once

// The places that a prompt's missing blocks are asked for, one after the other, and what is known of
// what each has. Which blocks are of use is kv/usable_prefix.h's to say: of what is in the pool and what
// can be had, the longest usable prefix. Which of them are loaded is decided here, for each place by
// itself (kv/load_choice.h): a slow one that has some blocks doesn't cost what a quick one has.
//
// No tier is asked here, and no clock.

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/retention.h"
#include "kv/load_choice.h"
#include "kv/tier_speed.h"
#include "kv/usable_prefix.h"
#include "kvnode/block_store.h"
#include "port/generate.h"

namespace sluice::worker {

/// A native engine's state is rows alone: a hole is computed, and what lies behind it is loaded. `there`
/// is by block of engine::Engine::kBlockTokens; the prefix's one list of loads, too.
[[nodiscard]] kv::UsablePrefix usable_blocks(const kv::StoredParts& there,
                                             std::size_t prompt_tokens);

/// How the load from one place was decided on, and what became of it.
struct LoadRecord {
    std::string_view source;
    kv::LoadChoice choice = kv::LoadChoice::kLoad;
    kv::LoadPrediction predicted;
    std::size_t blocks = 0;  ///< That the prediction is of.
    std::chrono::nanoseconds took{};
};

/// What the decisions depend on.
struct LoadTerms {
    std::chrono::nanoseconds queue{};  ///< Until the engine could begin to compute.
    std::size_t block_bytes = 0;
    /// What computing blocks takes; in order.
    std::function<std::chrono::nanoseconds(std::span<const std::size_t> blocks)> compute_time;
    std::optional<kv::ForcedChoice> forced;
    std::chrono::nanoseconds load_time{};  ///< Longest of all loads; of each one, if forced.
    std::chrono::steady_clock::time_point now;
};

/// One place to ask.
struct KvHop {
    std::string_view source;  ///< "peer", or a tier's name.
    kv::TierSpeed* speed = nullptr;
    kvnode::BlockStore* store = nullptr;   ///< Or
    const port::KvSource* peer = nullptr;  ///< another worker.
    std::vector<std::optional<Retention>>
        has{};  ///< By block; what is missing at the end isn't there.

    // Once that was decided:
    std::optional<LoadRecord> load{};
    /// Computing would have been as quick by then. None: somebody held for the request all that it has.
    std::optional<std::chrono::steady_clock::time_point> until{};

    [[nodiscard]] bool is_handover() const { return peer != nullptr && !peer->hold.empty(); }
};

class KvHops {
public:
    using Blocks = std::vector<std::size_t>;  ///< Indexes, in order.

    /// Of a prompt of so many blocks.
    explicit KvHops(std::size_t blocks) : blocks_(blocks) {}

    void add(KvHop hop);
    /// The next one to be asked; null after the last.
    [[nodiscard]] KvHop* next();
    /// The one that is asked now; `next` has returned it.
    [[nodiscard]] KvHop& present() { return all_[next_ - 1]; }

    /// Where the block will come from; null: nobody has it.
    [[nodiscard]] const KvHop* first_with(std::size_t block) const;
    /// Of `blocks`, in order, decides what is loaded from each place that holds it for nobody in
    /// particular. The nearest come first; what one is too slow for is left to those behind it, and
    /// what all are too slow for nobody has any more.
    void decide(Blocks blocks, const LoadTerms& terms);
    [[nodiscard]] std::vector<LoadRecord> decisions() const;

private:
    /// The blocks that are asked for there; the others of `wanted` it does not have any more.
    [[nodiscard]] static Blocks decide_on(KvHop& hop, const Blocks& wanted,
                                          std::chrono::nanoseconds queue, const LoadTerms& terms);

    std::size_t blocks_;
    std::vector<KvHop> all_;
    std::size_t next_ = 0;
};

}  // namespace sluice::worker
