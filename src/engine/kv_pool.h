#pragma once

// The engine's paged KV memory, and the prefixes that stay in it after their sequences ended.
//
// A block is `block_tokens` rows per layer. A block is free, held by sequences (a reference count),
// or kept: unheld but sealed under a key, so that a later sequence with the same prefix can take it
// instead of computing. Kept blocks are the reserve that allocation draws on, the longest unused
// first; a sequence gives its blocks back tail first, so prefixes outlive their endings.
//
// All bookkeeping lives in one record a block, linked by index: nothing is allocated after `create`.
// Not thread-safe.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "kv/block_key.h"

namespace sluice::engine {

using BlockIndex = std::uint32_t;

class KvPool {
public:
    struct Shape {
        std::size_t blocks = 0;
        std::size_t block_tokens = 64;
        std::size_t layers = 0;
        std::size_t row_floats = 0;
    };

    /// Of all rows of all blocks.
    [[nodiscard]] static std::size_t bytes(const Shape& shape) {
        return shape.blocks * shape.block_tokens * shape.layers * shape.row_floats * sizeof(float);
    }

    /// Reserves address space for all blocks; the system fills it with zeroed pages as they are used.
    [[nodiscard]] static Result<KvPool> create(const Shape& shape);
    KvPool(KvPool&&) noexcept = default;
    KvPool& operator=(KvPool&&) noexcept = default;

    [[nodiscard]] const Shape& shape() const { return shape_; }
    /// Free and kept blocks: what `allocate` can still give.
    [[nodiscard]] std::size_t available() const { return free_.size() + kept_; }
    [[nodiscard]] std::size_t held() const { return shape_.blocks - available(); }
    [[nodiscard]] std::size_t kept() const { return kept_; }
    [[nodiscard]] std::uint64_t evictions() const { return evictions_; }

    /// A block with one holder and undefined content; nothing if every block is held.
    [[nodiscard]] std::optional<BlockIndex> allocate();

    /// Appends the longest run of blocks sealed under the first of `keys` to `blocks`, each with one
    /// more holder.
    void take_prefix(std::span<const kv::BlockKey> keys, std::vector<BlockIndex>& blocks);

    /// Names a full block, so that others may take it. Keeps the first block of a name; equal keys
    /// mean equal bytes.
    void seal(BlockIndex block, const kv::BlockKey& key);

    /// Ends one holder of each of a sequence's blocks.
    void release(std::span<const BlockIndex> blocks);

    /// Forgets every kept block.
    void clear_kept();

    /// First row of `block` in `layer`.
    [[nodiscard]] float* page(std::size_t layer, BlockIndex block);
    /// Where layer `layer` of block 0 starts, and the distance to the same layer of block 1, in floats.
    [[nodiscard]] const float* layer_base(std::size_t layer) const;
    [[nodiscard]] std::size_t block_stride() const {
        return shape_.layers * shape_.block_tokens * shape_.row_floats;
    }

private:
    struct Unmap {
        std::size_t bytes = 0;
        void operator()(float* data) const;
    };
    static constexpr BlockIndex kNone = ~BlockIndex{0};

    struct Block {
        std::uint32_t holders = 0;
        std::optional<kv::BlockKey> key;
        BlockIndex same_bucket = kNone;  ///< The next with a key in its bucket.
        /// Neighbours in the order of last use, while the block is kept.
        BlockIndex older = kNone;
        BlockIndex newer = kNone;
    };

    KvPool(const Shape& shape, float* memory, std::size_t bytes);
    [[nodiscard]] BlockIndex& bucket(const kv::BlockKey& key);
    [[nodiscard]] BlockIndex find(const kv::BlockKey& key);
    void keep(BlockIndex block);
    void unkeep(BlockIndex block);
    void forget(BlockIndex block);

    Shape shape_;
    std::unique_ptr<float, Unmap> memory_;
    std::vector<Block> blocks_;
    std::vector<BlockIndex> free_;
    std::vector<BlockIndex> buckets_;  ///< First block of each; a power of two.
    std::size_t kept_ = 0;
    BlockIndex oldest_ = kNone;  ///< Of the kept: the longest unused.
    BlockIndex newest_ = kNone;
    std::uint64_t evictions_ = 0;
};

}  // namespace sluice::engine
