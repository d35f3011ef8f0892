#include "engine/block_desk.h"

#include <utility>

#include "base/assert.h"

namespace sluice::engine {

BlockDesk::BlockDesk(KvPool& pool, std::function<void()> wake)
    : pool_(pool), returns_(std::make_shared<BlockReturns>(std::move(wake))) {}

std::shared_ptr<const BlockHold> BlockDesk::hold(std::vector<BlockIndex> blocks) {
    return std::make_shared<const BlockHold>(pool_, returns_, std::move(blocks));
}

BlockDesk::Found BlockDesk::find(std::span<const kv::BlockKey> keys) {
    Found found;
    std::vector<BlockIndex> blocks;
    for (const kv::BlockKey& key : keys) {
        const std::optional<BlockIndex> block = pool_.take(key);
        if (!block) continue;
        blocks.push_back(*block);
        found.names.push_back(pool_.name_of(*block));
    }
    found.blocks = hold(std::move(blocks));
    return found;
}

std::shared_ptr<BlockHold> BlockDesk::allocate(std::size_t count) {
    take_returns();
    if (count > pool_.available()) return nullptr;
    std::vector<BlockIndex> blocks;
    blocks.reserve(count);
    for (std::size_t i = 0; i < count; ++i) blocks.push_back(*pool_.allocate());
    return std::make_shared<BlockHold>(pool_, returns_, std::move(blocks));
}

void BlockDesk::keep(BlockHold& hold, const Written& written) {
    SLUICE_ASSERT(written.names.size() == hold.size());
    const std::vector<BlockIndex> blocks = std::exchange(hold.blocks_, {});
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const std::optional<NamedBlock>& name = written.names[i];
        if (!name) continue;
        if (written.last_is_partial && i + 1 == blocks.size()) {
            pool_.seal_partial(blocks[i], name->key, written.owner);
        } else {
            pool_.seal(blocks[i], *name, written.owner);
        }
    }
    pool_.release(blocks);
}

}  // namespace sluice::engine
