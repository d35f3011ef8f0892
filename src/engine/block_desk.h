#pragma once

// Where blocks go out of the engine's pool and come in. Its methods are called between the engine's
// steps, or beside one that computes (Engine::with_blocks); what they hand out may be used anywhere.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/block_hold.h"
#include "engine/kv_pool.h"

namespace sluice::engine {

class BlockDesk {
public:
    /// `wake` asks for a call of `take_returns` before the next step, from any thread.
    BlockDesk(KvPool& pool, std::function<void()> wake);
    ~BlockDesk() { returns_->close(); }
    BlockDesk(const BlockDesk&) = delete;
    BlockDesk& operator=(const BlockDesk&) = delete;

    /// Those of `keys` that the pool has a full block of.
    struct Found {
        std::vector<NamedBlock> names;            ///< In the order of `keys`.
        std::shared_ptr<const BlockHold> blocks;  ///< One for each of `names`.
    };
    [[nodiscard]] Found find(std::span<const kv::BlockKey> keys);

    /// `count` blocks to be written; null if so many can't be had.
    [[nodiscard]] std::shared_ptr<BlockHold> allocate(std::size_t count);

    struct Written {
        std::vector<std::optional<NamedBlock>> names;  ///< One a block; nothing: it wasn't written.
        bool last_is_partial = false;
        BlockOwner owner{};
    };
    /// Ends a hold of written blocks: those with a name stay in the pool for whoever has that prefix,
    /// a partial one for one request alone. The hold is of no further use.
    void keep(BlockHold& hold, const Written& written);

    /// Takes over the blocks of a sequence that computes no more.
    [[nodiscard]] std::shared_ptr<const BlockHold> hold(std::vector<BlockIndex> blocks);

    /// As KvPool::forget_kept: what running sequences hold stays.
    std::size_t forget_kept(FunctionRef<bool(const kv::BlockKey&, const BlockOwner&)> fits) {
        return pool_.forget_kept(fits);
    }

    [[nodiscard]] std::vector<NamedBlock> named_blocks() const { return pool_.named_blocks(); }

    /// Gives back what ended holds held.
    void take_returns() { pool_.release(returns_->take()); }

private:
    KvPool& pool_;
    std::shared_ptr<BlockReturns> returns_;
};

}  // namespace sluice::engine
