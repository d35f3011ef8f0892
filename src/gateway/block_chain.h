#pragma once

// The names of a request's blocks, as the prefix index has them: worked out when a pool asks, kept
// as long as it asks for the same, and continued as the answer grows.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/sampling_params.h"
#include "kv/key_chain.h"
#include "port/server_info.h"
#include "routing/demand.h"

namespace sluice::gateway {

/// The first eight bytes, the first of them the highest.
[[nodiscard]] routing::BlockHash block_hash(const kv::BlockKey& key);

/// From what an engine says of itself; nullopt if it keeps no blocks that others could name. The
/// salt is each request's own.
[[nodiscard]] std::optional<kv::BlockKeyRoot> block_root(const port::ServerInfo& info);

class BlockChain {
public:
    explicit BlockChain(kv::Salt salt) : salt_(std::move(salt)) {}

    /// Of the full blocks of `prompt` and `answer`, one after the other, in engines with this root.
    /// Valid until the next call. What came before is what it was: `answer` only grows.
    [[nodiscard]] std::span<const routing::BlockHash> hashes(const kv::BlockKeyRoot& root,
                                                             std::span<const TokenId> prompt,
                                                             std::span<const TokenId> answer);

    /// Of the blocks that were asked for last.
    [[nodiscard]] std::span<const kv::BlockKey> keys() const { return keys_; }

private:
    kv::Salt salt_;
    kv::KeyChain names_;
    std::vector<kv::BlockKey> keys_;
    std::vector<routing::BlockHash> hashes_;
};

}  // namespace sluice::gateway
