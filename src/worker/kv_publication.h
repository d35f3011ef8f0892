#pragma once

// The blocks of one request on their way into the other tiers: the prompt's as they are computed, the
// answer's when it has ended. On the loop's thread.

#include <cstddef>
#include <string_view>
#include <vector>

#include "kv/key_chain.h"
#include "worker/kv_fetch.h"
#include "worker/kv_publisher.h"

namespace sluice::worker {

class KvPublication {
public:
    KvPublication(KvPublisher& publisher, const KvPublisher::Origin& origin,
                  const KvFetch::Fetched& fetched, std::vector<TokenId> tokens);

    /// The first `tokens` tokens are in the pool.
    void on_computed(std::size_t tokens);
    /// Further tokens of the answer.
    void on_tokens(std::span<const TokenId> tokens);
    /// All tokens but the last one are in the pool.
    void on_end();

private:
    void publish(const kvnode::ChainPtr& chain, std::size_t blocks);

    KvPublisher& publisher_;
    KvPublisher::Origin origin_;
    kv::KeyChain names_;
    kvnode::ChainPtr chain_;                 ///< Of the tokens it began with.
    std::vector<std::string_view> sources_;  ///< Of its blocks; empty: computed.
    std::vector<TokenId> tokens_;
    std::size_t published_ = 0;  ///< Blocks.
};

}  // namespace sluice::worker
