#include "engine/kv_pool.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <ranges>

#include "base/assert.h"

namespace sluice::engine {

void KvPool::Unmap::operator()(float* data) const { munmap(data, bytes); }

std::size_t KvPool::KeyHash::operator()(const kv::BlockKey& key) const {
    std::size_t hash = 0;  // Any eight bytes of a SHA-256 are as good as a hash of it.
    std::memcpy(&hash, key.data(), sizeof(hash));
    return hash;
}

Result<KvPool> KvPool::create(const Shape& shape) {
    const std::size_t bytes =
        shape.blocks * shape.block_tokens * shape.layers * shape.row_floats * sizeof(float);
    SLUICE_ASSERT(bytes > 0);
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return std::unexpected(
            Error::io(fmt::format("reserve {} bytes for the KV pool", bytes), errno));
    }
    return KvPool(shape, static_cast<float*>(memory), bytes);
}

KvPool::KvPool(const Shape& shape, float* memory, std::size_t bytes)
    : shape_(shape), memory_(memory, Unmap{bytes}), blocks_(shape.blocks) {
    for (std::size_t block = shape.blocks; block > 0; --block) {
        free_.push_back(static_cast<BlockIndex>(block - 1));
    }
}

std::optional<BlockIndex> KvPool::allocate() {
    if (free_.empty()) {
        if (kept_.empty()) return std::nullopt;
        const BlockIndex oldest = kept_.front();
        kept_.pop_front();
        forget(oldest);
        ++evictions_;
        free_.push_back(oldest);
    }
    const BlockIndex block = free_.back();
    free_.pop_back();
    blocks_[block].holders = 1;
    return block;
}

std::vector<BlockIndex> KvPool::take_prefix(std::span<const kv::BlockKey> keys) {
    std::vector<BlockIndex> taken;
    for (const kv::BlockKey& key : keys) {
        const auto found = sealed_.find(key);
        if (found == sealed_.end()) break;
        Block& block = blocks_[found->second];
        if (block.holders++ == 0) kept_.erase(block.kept);
        taken.push_back(found->second);
    }
    return taken;
}

void KvPool::seal(BlockIndex block, const kv::BlockKey& key) {
    SLUICE_ASSERT(blocks_[block].holders > 0);
    if (blocks_[block].key || !sealed_.emplace(key, block).second) return;
    blocks_[block].key = key;
}

void KvPool::release(std::span<const BlockIndex> blocks) {
    for (const BlockIndex index : std::views::reverse(blocks)) {
        Block& block = blocks_[index];
        SLUICE_ASSERT(block.holders > 0);
        if (--block.holders > 0) continue;
        if (block.key) {
            block.kept = kept_.insert(kept_.end(), index);
        } else {
            free_.push_back(index);
        }
    }
}

void KvPool::clear_kept() {
    for (const BlockIndex block : kept_) {
        forget(block);
        free_.push_back(block);
    }
    kept_.clear();
}

void KvPool::forget(BlockIndex block) {
    sealed_.erase(*blocks_[block].key);
    blocks_[block].key.reset();
}

float* KvPool::page(std::size_t layer, BlockIndex block) {
    return memory_.get() + block * block_stride() + layer * shape_.block_tokens * shape_.row_floats;
}

const float* KvPool::layer_base(std::size_t layer) const {
    return memory_.get() + layer * shape_.block_tokens * shape_.row_floats;
}

}  // namespace sluice::engine
