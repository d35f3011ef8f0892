#include "engine/sequence.h"

#include <span>

namespace sluice::engine {

void Sequence::name_blocks(std::size_t count, std::size_t block_tokens) {
    while (keys.size() < count) {
        const std::size_t begin = keys.size() * block_tokens;
        keys.push_back(names.child(keys.empty() ? names.root() : keys.back(), begin,
                                   std::span(tokens).subspan(begin, block_tokens)));
    }
}

}  // namespace sluice::engine
