#include "worker/kv_publisher.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/limits.h"
#include "kv/placement.h"

namespace sluice::worker {
namespace {

using std::chrono::steady_clock;

/// Blocks that are encoded, and held in the pool meanwhile, at a time.
constexpr std::size_t kBatch = 32;
/// A tier that has yet to take more than this misses out.
constexpr std::size_t kTierBytes = 64 * 1024 * 1024;
/// Blocks that wait; a prompt of the longest kind has fewer.
constexpr std::size_t kWaiting = limits::kPortBlockKeys;

}  // namespace

KvPublisher::KvPublisher(Host host) : host_(std::move(host)) {}

bool KvPublisher::lacks(std::size_t tier, const kv::BlockKey& key, steady_clock::time_point now) {
    return host_.tiers.all[tier]->in_use && !known_[tier].contains(key, now);
}

template <class Work>
std::function<void()> KvPublisher::if_alive(Work work) {
    return [weak = std::weak_ptr(alive_), work = std::move(work)] {
        if (!weak.expired()) work();
    };
}

void KvPublisher::forget_known() {
    for (KvKnown& known : known_) known.clear();
}

void KvPublisher::publish(const Origin& origin, const kvnode::ChainPtr& chain,
                          std::vector<Block> blocks) {
    if (chain->retention == Retention::kNone || host_.tiers.empty()) return;
    known_.resize(host_.tiers.all.size());  // All are there once the worker has started.
    tier_bytes_.resize(known_.size());
    touch_extents(chain, blocks);
    std::erase_if(blocks, [&](const Block& block) {
        const auto now = steady_clock::now();
        for (std::size_t tier = 0; tier < known_.size(); ++tier)
            if (lacks(tier, chain->keys[block.index], now)) return false;
        return true;
    });
    if (blocks.empty()) return;
    if (waiting_ + blocks.size() > kWaiting) return host_.on_dropped(blocks.size());
    waiting_ += blocks.size();
    jobs_.push_back({.origin = origin, .chain = chain, .blocks = std::move(blocks)});
    if (!busy_) begin_job();
}

// What is known to be there is not asked for and not touched for some minutes. Where a chain lies in
// pieces its beginning, which the pool has had all the time, would so be the oldest use, and go before
// the ends that were loaded a moment ago. A node keeps what others follow, so a use of a piece's last
// block keeps all of it; under which class it lies is not known here.
void KvPublisher::touch_extents(const kvnode::ChainPtr& chain, const std::vector<Block>& blocks) {
    const auto now = steady_clock::now();
    for (std::size_t tier = 0; tier < known_.size(); ++tier) {
        KvTier& asked = *host_.tiers.all[tier];
        if (!asked.in_use || !asked.is_spread) continue;
        std::map<std::size_t, std::size_t> last;  // Of each extent.
        for (const Block& block : blocks) {
            if (block.is_computed || lacks(tier, chain->keys[block.index], now)) continue;
            std::size_t& index = last[kv::extent_start(block.index)];
            index = std::max(index, block.index);
        }
        std::vector<kvnode::FoundBlock> used;
        for (const auto& [extent, index] : last)
            for (const Retention retention : kvnode::lookup_order(chain->retention))
                used.push_back({.index = index, .retention = retention});
        if (!used.empty()) asked.store->touch(chain, std::move(used));
    }
}

// What was found and not computed may be in the tiers already: then its time there begins anew. What was
// computed is stored anyway: a tier that has it compares.
void KvPublisher::begin_job() {
    busy_ = !jobs_.empty();
    if (!busy_) return;
    const Job& job = jobs_.front();
    if (std::ranges::all_of(job.blocks, &Block::is_computed)) return next_batch();
    finds_ = 1;
    for (std::size_t tier = 0; tier < host_.tiers.all.size(); ++tier) {
        if (!host_.tiers.all[tier]->in_use) continue;
        ++finds_;
        auto on_found = [this, tier, weak = std::weak_ptr(alive_)](
                            const std::vector<std::optional<Retention>>& found) {
            if (!weak.expired()) on_found_in_tier(tier, found);
        };
        host_.tiers.all[tier]->store->find(job.chain, steady_clock::now() + host_.tiers.find_time,
                                           std::move(on_found));
    }
    if (--finds_ == 0) next_batch();
}

void KvPublisher::on_found_in_tier(std::size_t tier,
                                   const std::vector<std::optional<Retention>>& found) {
    const Job& job = jobs_.front();
    const auto now = steady_clock::now();
    std::vector<kvnode::FoundBlock> there;
    for (const Block& block : job.blocks) {
        if (block.is_computed || !found[block.index]) continue;
        if (known_[tier].contains(job.chain->keys[block.index], now)) continue;
        known_[tier].add(job.chain->keys[block.index], now);
        there.push_back({.index = block.index, .retention = *found[block.index]});
    }
    if (!there.empty()) host_.tiers.all[tier]->store->touch(job.chain, std::move(there));
    if (--finds_ == 0) next_batch();
}

bool KvPublisher::wanted(const Block& block) {
    const kv::BlockKey& key = jobs_.front().chain->keys[block.index];
    const auto now = steady_clock::now();
    for (std::size_t tier = 0; tier < known_.size(); ++tier)
        if (lacks(tier, key, now) && tier_bytes_[tier] < kTierBytes) return true;
    return false;
}

void KvPublisher::next_batch() {
    Job& job = jobs_.front();
    std::vector<Block> batch;
    while (!job.blocks.empty() && batch.size() < kBatch) {
        if (wanted(job.blocks.back())) batch.push_back(job.blocks.back());
        job.blocks.pop_back();
        --waiting_;
    }
    if (batch.empty()) return end_job();
    std::vector<kv::BlockKey> keys;
    for (const Block& block : batch) keys.push_back(job.chain->keys[block.index]);
    job.origin.engine->with_blocks([this, weak = std::weak_ptr(alive_), loop = &host_.loop,
                                    keys = std::move(keys),
                                    batch = std::move(batch)](engine::BlockDesk& desk) {
        auto found = std::make_shared<engine::BlockDesk::Found>(desk.find(keys));
        loop->post([this, weak, found, batch] {
            if (!weak.expired()) encode(std::move(*found), batch);
        });
    });
}

void KvPublisher::encode(engine::BlockDesk::Found found, std::vector<Block> blocks) {
    const Job& job = jobs_.front();
    auto task = [this, weak = std::weak_ptr(alive_), loop = &host_.loop, chain = job.chain,
                 producer = job.origin.producer,
                 component = job.origin.engine->key_root().component, found = std::move(found),
                 blocks = std::move(blocks)] {
        const auto batch = std::make_shared<std::vector<Encoded>>();
        std::size_t at = 0;
        for (const Block& block : blocks) {
            if (at == found.names.size()) break;
            const engine::NamedBlock& name = found.names[at];
            if (name.key != chain->keys[block.index]) continue;  // Gone from the pool.
            const std::size_t tokens = engine::Engine::kBlockTokens;
            const kv::BlockHeader header{.key = name.key,
                                         .parent = name.parent,
                                         .component = component,
                                         .tokens = static_cast<std::uint32_t>(tokens),
                                         .producer = producer,
                                         .payload_checksum = {}};
            batch->push_back(
                {.block = block,
                 .value = kv::SharedBytes::own(kv::encode_block(
                     header, found.blocks->bytes(tokens),
                     [&](std::span<std::byte> out) { found.blocks->read(at, tokens, out); }))});
            ++at;
        }
        loop->post([this, weak, batch] {
            if (!weak.expired()) store(batch);
        });
    };
    const std::size_t count = blocks.size();
    if (!host_.tasks.submit(std::move(task))) {
        host_.on_dropped(count);
        end_job();
    }
}

void KvPublisher::store(const Batch& batch) {
    const kvnode::ChainPtr& chain = jobs_.front().chain;
    const auto now = steady_clock::now();
    for (std::size_t tier = 0; tier < host_.tiers.all.size(); ++tier) {
        for (const Encoded& each : *batch) {
            const kv::BlockKey& key = chain->keys[each.block.index];
            if (!lacks(tier, key, now)) continue;
            if (tier_bytes_[tier] >= kTierBytes) {
                host_.on_dropped(1);
                continue;
            }
            const std::size_t bytes = each.value.bytes.size();
            tier_bytes_[tier] += bytes;
            ++in_flight_;
            host_.tiers.all[tier]->store->store(
                chain, each.block.index, each.value,
                [this, weak = std::weak_ptr(alive_), tier, bytes, key](kvnode::Stored how) {
                    if (weak.expired()) return;
                    tier_bytes_[tier] -= bytes;
                    --in_flight_;
                    if (how != kvnode::Stored::kFailed) known_[tier].add(key, steady_clock::now());
                    host_.on_stored(host_.tiers.all[tier]->name, how);
                });
        }
    }
    next_batch();
}

void KvPublisher::end_job() {
    waiting_ -= jobs_.front().blocks.size();
    jobs_.pop_front();
    begin_job();
}

}  // namespace sluice::worker
