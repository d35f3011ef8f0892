#include "engine/sequence.h"

#include <span>

namespace sluice::engine {

void Sequence::name_blocks(std::size_t count, std::size_t block_tokens) {
    while (keys.size() < count) {
        const auto held = std::span(tokens).subspan(keys.size() * block_tokens, block_tokens);
        keys.push_back(kv::child_key(keys.empty() ? root : keys.back(), held));
    }
}

}  // namespace sluice::engine
