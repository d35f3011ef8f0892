#include "kv/block_key.h"

#include <array>

namespace sluice::kv {

BlockKey root_key(const BlockKeyRoot& root) {
    Sha256 hash;
    const auto field = [&hash](std::string_view text) {
        hash.update_u64(text.size()).update(text);
    };
    field("sluice kv root 1");
    field(root.fingerprint);
    field(root.numerics_id);
    field(root.component);
    hash.update_u64(root.shard);
    field(root.layout);
    field(root.dtype);
    hash.update_u64(root.block_tokens);
    field(root.salt);
    return hash.finish();
}

BlockKey child_key(const BlockKey& parent, std::span<const TokenId> tokens) {
    Sha256 hash;
    hash.update(std::as_bytes(std::span(parent)));
    hash.update_u64(tokens.size());
    std::array<std::uint8_t, 256> bytes{};
    std::size_t filled = 0;
    for (const TokenId token : tokens) {
        auto value = static_cast<std::uint32_t>(token);
        for (int i = 0; i < 4; ++i, value >>= 8) bytes[filled++] = static_cast<std::uint8_t>(value);
        if (filled < bytes.size()) continue;
        hash.update(std::as_bytes(std::span(bytes)));
        filled = 0;
    }
    hash.update(std::as_bytes(std::span(bytes).first(filled)));
    return hash.finish();
}

std::vector<BlockKey> chain_keys(const BlockKey& root, std::span<const TokenId> tokens,
                                 std::size_t block_tokens) {
    std::vector<BlockKey> keys;
    keys.reserve(tokens.size() / block_tokens);
    for (; tokens.size() >= block_tokens; tokens = tokens.subspan(block_tokens))
        keys.push_back(child_key(keys.empty() ? root : keys.back(), tokens.first(block_tokens)));
    return keys;
}

}  // namespace sluice::kv
