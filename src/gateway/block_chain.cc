#include "gateway/block_chain.h"

#include <algorithm>

namespace sluice::gateway {

routing::BlockHash block_hash(const kv::BlockKey& key) {
    routing::BlockHash hash = 0;
    for (std::size_t i = 0; i < sizeof(hash); ++i) hash = hash << 8 | key[i];
    return hash;
}

std::optional<kv::BlockKeyRoot> block_root(const port::ServerInfo& info) {
    if (info.kv_components.empty() || info.block_tokens == 0) return std::nullopt;
    const port::KvComponent& first = info.kv_components.front();
    return kv::BlockKeyRoot{.fingerprint = info.fingerprint,
                            .numerics_id = info.numerics_id,
                            .component = first.name,
                            .shard = first.shard,
                            .layout = first.layout,
                            .dtype = first.dtype,
                            .block_tokens = info.block_tokens,
                            .salt = {}};
}

std::span<const routing::BlockHash> BlockChain::hashes(const kv::BlockKeyRoot& root,
                                                       std::span<const TokenId> prompt,
                                                       std::span<const TokenId> answer) {
    kv::KeyChain names(root, salt_);
    if (hashes_.empty() || names.root() != names_.root()) {
        hashes_.clear();
        keys_.clear();
        names_ = std::move(names);
    }
    const std::size_t size = root.block_tokens;
    const std::size_t blocks = (prompt.size() + answer.size()) / size;
    std::vector<TokenId> across;
    while (hashes_.size() < blocks) {
        const std::size_t begin = hashes_.size() * size;
        std::span<const TokenId> tokens;
        if (begin + size <= prompt.size()) {
            tokens = prompt.subspan(begin, size);
        } else if (begin >= prompt.size()) {
            tokens = answer.subspan(begin - prompt.size(), size);
        } else {
            across.assign(prompt.begin() + static_cast<std::ptrdiff_t>(begin), prompt.end());
            const auto rest = answer.first(size - across.size());
            across.insert(across.end(), rest.begin(), rest.end());
            tokens = across;
        }
        const kv::BlockKey& parent = keys_.empty() ? names_.root() : keys_.back();
        keys_.push_back(names_.child(parent, begin, tokens));
        hashes_.push_back(block_hash(keys_.back()));
    }
    return hashes_;
}

}  // namespace sluice::gateway
