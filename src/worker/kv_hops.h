#pragma once

// The places that a prompt's missing blocks are asked for, one after the other, and what is known of
// what each has. Which blocks are worth asking for is kv/usable_prefix.h's to say: of what is in the
// pool and what can be had, the longest usable prefix.
//
// No tier is asked here, and no clock.

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/retention.h"
#include "kv/tier_speed.h"
#include "kv/usable_prefix.h"
#include "kvnode/block_store.h"
#include "port/generate.h"

namespace sluice::worker {

/// A native engine's state is rows alone: a hole is computed, and what lies behind it is loaded. `there`
/// is by block of engine::Engine::kBlockTokens; the prefix's one list of loads, too.
[[nodiscard]] kv::UsablePrefix usable_blocks(const kv::StoredParts& there,
                                             std::size_t prompt_tokens);

/// One place to ask.
struct KvHop {
    std::string_view source;  ///< "peer", or a tier's name.
    kv::TierSpeed* speed = nullptr;
    kvnode::BlockStore* store = nullptr;   ///< Or
    const port::KvSource* peer = nullptr;  ///< another worker.
    std::vector<std::optional<Retention>>
        has{};  ///< By block; what is missing at the end isn't there.

    [[nodiscard]] bool is_handover() const { return peer != nullptr && !peer->hold.empty(); }
};

class KvHops {
public:
    /// Of a prompt of so many blocks.
    explicit KvHops(std::size_t blocks) : blocks_(blocks) {}

    void add(KvHop hop);
    /// The next one to be asked; null after the last.
    [[nodiscard]] KvHop* next();
    /// The one that is asked now; `next` has returned it.
    [[nodiscard]] const KvHop& present() const { return all_[next_ - 1]; }

    /// Where the block will come from; null: nobody has it.
    [[nodiscard]] const KvHop* first_with(std::size_t block) const;
    /// Nobody is asked for them.
    void forget(std::span<const std::size_t> blocks);
    /// Of `blocks`, each from the first that has it.
    [[nodiscard]] std::chrono::nanoseconds load_time(std::span<const std::size_t> blocks,
                                                     std::size_t block_bytes) const;
    /// Whether the speed of somebody who has something, and holds it for nobody, was not looked at for
    /// long.
    [[nodiscard]] bool speed_is_stale(std::chrono::steady_clock::time_point now) const;

private:
    std::size_t blocks_;
    std::vector<KvHop> all_;
    std::size_t next_ = 0;
};

}  // namespace sluice::worker
