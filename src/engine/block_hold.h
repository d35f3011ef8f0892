#pragma once

// Blocks of a pool in the hands of somebody outside of the engine: a prefilled sequence that waits to
// be fetched, or room for blocks that come from elsewhere. A hold *is* the holder: while it lives its
// blocks can't be given to anybody else, and when it ends, on whatever thread, they are on their way
// back. So its memory may be read and written beside steps, without the engine.

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/kv_pool.h"

namespace sluice::engine {

/// Blocks on their way back. Thread-safe.
class BlockReturns {
public:
    /// `wake` is called, on whatever thread, when there is something to take after there was nothing.
    explicit BlockReturns(std::function<void()> wake) : wake_(std::move(wake)) {}

    void put(std::span<const BlockIndex> blocks);
    [[nodiscard]] std::vector<BlockIndex> take();
    /// The pool is gone: nothing is called, and nothing taken, from now on.
    void close();

private:
    std::mutex mutex_;
    std::vector<BlockIndex> blocks_;
    std::function<void()> wake_;
};

class BlockHold {
public:
    /// Takes over one holder of each of `blocks`.
    BlockHold(const KvPool& pool, std::shared_ptr<BlockReturns> returns,
              std::vector<BlockIndex> blocks);
    ~BlockHold();
    BlockHold(const BlockHold&) = delete;
    BlockHold& operator=(const BlockHold&) = delete;

    [[nodiscard]] std::size_t size() const { return blocks_.size(); }
    /// Of the first `tokens` rows of a block, all layers together.
    [[nodiscard]] std::size_t bytes(std::size_t tokens) const;

    /// Copies the first `tokens` rows of block `index` out, layer by layer; `out` has `bytes(tokens)`.
    /// The block's content must be complete: it is sealed, or its sequence computes no more.
    void read(std::size_t index, std::size_t tokens, std::span<std::byte> out) const;

    /// The reverse, for blocks that nobody else holds.
    void write(std::size_t index, std::size_t tokens, std::span<const std::byte> in);

private:
    friend class BlockDesk;
    [[nodiscard]] float* rows(std::size_t index, std::size_t layer) const;

    KvPool::Shape shape_;
    std::shared_ptr<float> memory_;
    std::shared_ptr<BlockReturns> returns_;
    std::vector<BlockIndex> blocks_;
};

/// The blocks of one computed sequence, with their names.
struct HeldSequence {
    std::shared_ptr<const BlockHold> blocks;  ///< The full ones, then the tail if there is one.
    kv::BlockKey root{};                      ///< Parent of the first.
    std::vector<kv::BlockKey> keys;           ///< Of the full ones.
    std::size_t tail_tokens = 0;              ///< In the block after them.
    kv::BlockKey tail_key{};                  ///< Of that block's tokens, if there are any.

    /// Of one of `blocks`.
    [[nodiscard]] NamedBlock name_of(std::size_t block) const {
        return {.key = block < keys.size() ? keys[block] : tail_key,
                .parent = block == 0 ? root : keys[block - 1],
                .first = block == 0};
    }
    [[nodiscard]] std::size_t tokens_of(std::size_t block, std::size_t block_tokens) const {
        return block < keys.size() ? block_tokens : tail_tokens;
    }
};

}  // namespace sluice::engine
