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
#include "base/function_ref.h"
#include "engine/block_observer.h"
#include "engine/block_owner.h"
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

    /// The block sealed under `key`, with one more holder; nothing if there is none.
    [[nodiscard]] std::optional<BlockIndex> take(const kv::BlockKey& key);

    /// Whether `take` would find one.
    [[nodiscard]] bool has(const kv::BlockKey& key);

    /// The block sealed under `key` if nobody holds it, with its first holder and without its name:
    /// for a partial block, which its holder goes on to fill.
    [[nodiscard]] std::optional<BlockIndex> take_alone(const kv::BlockKey& key);

    /// Names a full block, so that others may take it. Keeps the first block of a name; equal keys
    /// mean equal bytes.
    void seal(BlockIndex block, const NamedBlock& name, const BlockOwner& owner = {});
    /// Names a partial block, for `take_alone`. Observers don't hear of it.
    void seal_partial(BlockIndex block, const kv::BlockKey& key, const BlockOwner& owner = {});

    /// Every full block with a name, in the order in which they were named.
    [[nodiscard]] std::vector<NamedBlock> named_blocks() const;
    /// Of a block that has a name.
    [[nodiscard]] NamedBlock name_of(BlockIndex block) const;
    /// Hears of names that come and go; null for none. It outlives the pool.
    void observe(BlockObserver* observer) { observer_ = observer; }

    /// Ends one holder of each of a sequence's blocks.
    void release(std::span<const BlockIndex> blocks);

    /// Forgets the kept blocks that `fits` says; how many they were.
    std::size_t forget_kept(FunctionRef<bool(const kv::BlockKey&, const BlockOwner&)> fits);

    /// All rows of all blocks, which live as long as somebody has this.
    [[nodiscard]] const std::shared_ptr<float>& memory() const { return memory_; }
    /// First row of `block` in `layer`.
    [[nodiscard]] float* page(std::size_t layer, BlockIndex block);
    /// Where layer `layer` of block 0 starts, and the distance to the same layer of block 1, in floats.
    [[nodiscard]] const float* layer_base(std::size_t layer) const;
    [[nodiscard]] std::size_t block_stride() const {
        return shape_.layers * shape_.block_tokens * shape_.row_floats;
    }

private:
    static constexpr BlockIndex kNone = ~BlockIndex{0};

    struct Block {
        std::uint32_t holders = 0;
        std::optional<kv::BlockKey> key;
        BlockOwner owner;  ///< While it has a key.
        kv::BlockKey parent{};
        bool first = false;              ///< Of its sequence.
        std::uint64_t named = 0;         ///< When, in the order of names; 0 for a partial block.
        BlockIndex same_bucket = kNone;  ///< The next with a key in its bucket.
        /// Neighbours in the order of last use, while the block is kept.
        BlockIndex older = kNone;
        BlockIndex newer = kNone;
    };

    KvPool(const Shape& shape, std::shared_ptr<float> memory);
    [[nodiscard]] BlockIndex& bucket(const kv::BlockKey& key);
    [[nodiscard]] BlockIndex find(const kv::BlockKey& key);
    void keep(BlockIndex block);
    void unkeep(BlockIndex block);
    void forget(BlockIndex block);
    /// False if the block or the key is taken already.
    bool name(BlockIndex block, const kv::BlockKey& key, const BlockOwner& owner);

    Shape shape_;
    std::shared_ptr<float> memory_;
    std::vector<Block> blocks_;
    std::vector<BlockIndex> free_;
    std::vector<BlockIndex> buckets_;  ///< First block of each; a power of two.
    std::size_t kept_ = 0;
    BlockIndex oldest_ = kNone;  ///< Of the kept: the longest unused.
    BlockIndex newest_ = kNone;
    std::uint64_t evictions_ = 0;
    std::uint64_t names_ = 0;  ///< Given so far.
    BlockObserver* observer_ = nullptr;
};

}  // namespace sluice::engine
