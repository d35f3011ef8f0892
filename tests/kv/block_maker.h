#pragma once

// Blocks for tests: chains of names, and values that are what their names say.

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "kv/block_name.h"
#include "kv/block_value.h"
#include "kv/shared_bytes.h"

namespace sluice::kv {

struct TestBlock {
    std::string name;
    SharedBytes value;
};

inline SharedBytes block_value(const BlockKey& key, const BlockKey& parent,
                               std::string_view payload) {
    const BlockHeader header{
        .key = key, .parent = parent, .component = "mla", .tokens = 64, .producer = {}};
    return SharedBytes::own(encode_block(header, payload.size(), [&](std::span<std::byte> out) {
        std::memcpy(out.data(), payload.data(), payload.size());
    }));
}

/// `count` blocks; equal texts make equal blocks. The root is the tenant's.
inline std::vector<TestBlock> make_chain(const std::string& text, std::size_t count,
                                         const std::string& tenant = "acme",
                                         Retention retention = Retention::kChat,
                                         std::size_t payload_bytes = 10'000) {
    std::vector<TestBlock> chain;
    BlockKey parent = sha256(tenant);
    for (std::size_t i = 0; i < count; ++i) {
        const BlockKey key = sha256(tenant + "/" + text + "/" + std::to_string(i));
        chain.push_back({.name = to_wire({.tenant = tenant, .retention = retention, .key = key}),
                         .value = block_value(key, parent, std::string(payload_bytes, 'x'))});
        parent = key;
    }
    return chain;
}

}  // namespace sluice::kv
