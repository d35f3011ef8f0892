#include "engine/block_hold.h"

#include <cstring>
#include <utility>

#include "base/assert.h"

namespace sluice::engine {

void BlockReturns::put(std::span<const BlockIndex> blocks) {
    const std::lock_guard lock(mutex_);
    if (!wake_ || blocks.empty()) return;
    const bool wake = blocks_.empty();
    blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
    if (wake) wake_();
}

std::vector<BlockIndex> BlockReturns::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(blocks_, {});
}

void BlockReturns::close() {
    const std::lock_guard lock(mutex_);
    wake_ = nullptr;
    blocks_.clear();
}

BlockHold::BlockHold(const KvPool& pool, std::shared_ptr<BlockReturns> returns,
                     std::vector<BlockIndex> blocks)
    : shape_(pool.shape()),
      memory_(pool.memory()),
      returns_(std::move(returns)),
      blocks_(std::move(blocks)) {}

BlockHold::~BlockHold() { returns_->put(blocks_); }

std::size_t BlockHold::bytes(std::size_t tokens) const {
    return shape_.layers * tokens * shape_.row_floats * sizeof(float);
}

float* BlockHold::rows(std::size_t index, std::size_t layer) const {
    const std::size_t layer_floats = shape_.block_tokens * shape_.row_floats;
    return memory_.get() + (blocks_[index] * shape_.layers + layer) * layer_floats;
}

void BlockHold::read(std::size_t index, std::size_t tokens, std::span<std::byte> out) const {
    SLUICE_ASSERT(index < size() && tokens <= shape_.block_tokens && out.size() == bytes(tokens));
    const std::size_t chunk = tokens * shape_.row_floats * sizeof(float);
    if (chunk == 0) return;
    for (std::size_t layer = 0; layer < shape_.layers; ++layer)
        std::memcpy(out.data() + layer * chunk, rows(index, layer), chunk);
}

void BlockHold::write(std::size_t index, std::size_t tokens, std::span<const std::byte> in) {
    SLUICE_ASSERT(index < size() && tokens <= shape_.block_tokens && in.size() == bytes(tokens));
    const std::size_t chunk = tokens * shape_.row_floats * sizeof(float);
    if (chunk == 0) return;
    for (std::size_t layer = 0; layer < shape_.layers; ++layer)
        std::memcpy(rows(index, layer), in.data() + layer * chunk, chunk);
}

}  // namespace sluice::engine
