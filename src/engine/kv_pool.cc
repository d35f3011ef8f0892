#include "engine/kv_pool.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ranges>
#include <utility>

#include "base/assert.h"

namespace sluice::engine {

Result<KvPool> KvPool::create(const Shape& shape) {
    const std::size_t bytes = KvPool::bytes(shape);
    SLUICE_ASSERT(bytes > 0);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return std::unexpected(
            Error::io(fmt::format("reserve {} bytes for the KV pool", bytes), errno));
    }
    return KvPool(shape,
                  {static_cast<float*>(memory), [bytes](float* data) { munmap(data, bytes); }});
}

KvPool::KvPool(const Shape& shape, std::shared_ptr<float> memory)
    : shape_(shape),
      memory_(std::move(memory)),
      blocks_(shape.blocks),
      buckets_(std::bit_ceil(shape.blocks), kNone) {
    free_.reserve(shape.blocks);
    for (std::size_t block = shape.blocks; block > 0; --block) {
        free_.push_back(static_cast<BlockIndex>(block - 1));
    }
}

// Any eight bytes of a SHA-256 are as good as a hash of it.
BlockIndex& KvPool::bucket(const kv::BlockKey& key) {
    std::size_t hash = 0;
    std::memcpy(&hash, key.data(), sizeof(hash));
    return buckets_[hash & (buckets_.size() - 1)];
}

BlockIndex KvPool::find(const kv::BlockKey& key) {
    BlockIndex block = bucket(key);
    while (block != kNone && blocks_[block].key != key) block = blocks_[block].same_bucket;
    return block;
}

void KvPool::keep(BlockIndex block) {
    blocks_[block].older = newest_;
    blocks_[block].newer = kNone;
    (newest_ == kNone ? oldest_ : blocks_[newest_].newer) = block;
    newest_ = block;
    ++kept_;
}

void KvPool::unkeep(BlockIndex block) {
    const Block& entry = blocks_[block];
    (entry.older == kNone ? oldest_ : blocks_[entry.older].newer) = entry.newer;
    (entry.newer == kNone ? newest_ : blocks_[entry.newer].older) = entry.older;
    --kept_;
}

void KvPool::forget(BlockIndex block) {
    Block& entry = blocks_[block];
    BlockIndex* link = &bucket(*entry.key);
    while (*link != block) link = &blocks_[*link].same_bucket;
    *link = entry.same_bucket;
    if (observer_ != nullptr && entry.named > 0) observer_->removed(*entry.key);
    entry.key.reset();
}

std::optional<BlockIndex> KvPool::allocate() {
    if (free_.empty()) {
        if (kept_ == 0) return std::nullopt;
        const BlockIndex oldest = oldest_;
        unkeep(oldest);
        forget(oldest);
        ++evictions_;
        free_.push_back(oldest);
    }
    const BlockIndex block = free_.back();
    free_.pop_back();
    blocks_[block].holders = 1;
    return block;
}

std::optional<BlockIndex> KvPool::take(const kv::BlockKey& key) {
    const BlockIndex found = find(key);
    if (found == kNone || blocks_[found].named == 0) return std::nullopt;
    if (blocks_[found].holders++ == 0) unkeep(found);
    return found;
}

bool KvPool::has(const kv::BlockKey& key) {
    const BlockIndex found = find(key);
    return found != kNone && blocks_[found].named > 0;
}

void KvPool::take_prefix(std::span<const kv::BlockKey> keys, std::vector<BlockIndex>& blocks) {
    for (const kv::BlockKey& key : keys) {
        const std::optional<BlockIndex> found = take(key);
        if (!found) return;
        blocks.push_back(*found);
    }
}

std::optional<BlockIndex> KvPool::take_alone(const kv::BlockKey& key) {
    const BlockIndex found = find(key);
    if (found == kNone || blocks_[found].holders > 0) return std::nullopt;
    unkeep(found);
    forget(found);
    blocks_[found].holders = 1;
    return found;
}

bool KvPool::name(BlockIndex block, const kv::BlockKey& key, const BlockOwner& owner) {
    Block& entry = blocks_[block];
    SLUICE_ASSERT(entry.holders > 0);
    if (entry.key || find(key) != kNone) return false;
    entry.key = key;
    entry.owner = owner;
    entry.named = 0;
    entry.same_bucket = std::exchange(bucket(key), block);
    return true;
}

void KvPool::seal(BlockIndex block, const NamedBlock& named, const BlockOwner& owner) {
    if (!name(block, named.key, owner)) return;
    Block& entry = blocks_[block];
    entry.parent = named.parent;
    entry.first = named.first;
    entry.named = ++names_;
    if (observer_ != nullptr) observer_->stored(named);
}

void KvPool::seal_partial(BlockIndex block, const kv::BlockKey& key, const BlockOwner& owner) {
    static_cast<void>(name(block, key, owner));
}

NamedBlock KvPool::name_of(BlockIndex block) const {
    const Block& entry = blocks_[block];
    SLUICE_ASSERT(entry.key.has_value());
    return {.key = *entry.key, .parent = entry.parent, .first = entry.first};
}

std::vector<NamedBlock> KvPool::named_blocks() const {
    std::vector<BlockIndex> named;
    for (BlockIndex block = 0; block < blocks_.size(); ++block)
        if (blocks_[block].key && blocks_[block].named > 0) named.push_back(block);
    std::ranges::sort(named, {}, [this](BlockIndex block) { return blocks_[block].named; });
    std::vector<NamedBlock> result;
    result.reserve(named.size());
    for (const BlockIndex block : named) result.push_back(name_of(block));
    return result;
}

void KvPool::release(std::span<const BlockIndex> blocks) {
    for (const BlockIndex index : std::views::reverse(blocks)) {
        Block& block = blocks_[index];
        SLUICE_ASSERT(block.holders > 0);
        if (--block.holders > 0) continue;
        if (block.key) {
            keep(index);
        } else {
            free_.push_back(index);
        }
    }
}

std::size_t KvPool::forget_kept(FunctionRef<bool(const kv::BlockKey&, const BlockOwner&)> fits) {
    std::size_t forgotten = 0;
    for (BlockIndex block = oldest_; block != kNone;) {
        const Block& entry = blocks_[block];
        const BlockIndex next = entry.newer;
        if (fits(*entry.key, entry.owner)) {
            unkeep(block);
            forget(block);
            free_.push_back(block);
            ++forgotten;
        }
        block = next;
    }
    return forgotten;
}

float* KvPool::page(std::size_t layer, BlockIndex block) {
    return memory_.get() + block * block_stride() + layer * shape_.block_tokens * shape_.row_floats;
}

const float* KvPool::layer_base(std::size_t layer) const {
    return memory_.get() + layer * shape_.block_tokens * shape_.row_floats;
}

}  // namespace sluice::engine
