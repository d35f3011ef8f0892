#include "kv/key_chain.h"

#include <utility>

namespace sluice::kv {
namespace {

BlockKey salted(const BlockKey& parent, std::string_view salt) {
    Sha256 hash;
    hash.update("sluice kv own salt 1");
    hash.update(std::as_bytes(std::span(parent)));
    hash.update_u64(salt.size()).update(salt);
    return hash.finish();
}

}  // namespace

KeyChain::KeyChain(BlockKeyRoot root, const Salt& salt)
    : block_tokens_(root.block_tokens), own_(salt.own), own_from_(salt.own_from) {
    root.salt = salt.shared;
    root_ = root_key(root);
}

BlockKey KeyChain::child(const BlockKey& parent, std::size_t begin,
                         std::span<const TokenId> tokens) const {
    if (own_.empty() || begin + tokens.size() <= own_from_) return child_key(parent, tokens);
    return child_key(salted(parent, own_), tokens);
}

std::vector<BlockKey> KeyChain::keys(std::span<const TokenId> tokens) const {
    std::vector<BlockKey> keys;
    keys.reserve(tokens.size() / block_tokens_);
    for (std::size_t at = 0; at + block_tokens_ <= tokens.size(); at += block_tokens_)
        keys.push_back(
            child(keys.empty() ? root_ : keys.back(), at, tokens.subspan(at, block_tokens_)));
    return keys;
}

}  // namespace sluice::kv
