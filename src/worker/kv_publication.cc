#include "worker/kv_publication.h"

#include <algorithm>
#include <utility>

namespace sluice::worker {
namespace {

constexpr std::size_t kBlockTokens = engine::Engine::kBlockTokens;

}  // namespace

KvPublication::KvPublication(KvPublisher& publisher, const KvPublisher::Origin& origin,
                             const KvFetch::Fetched& fetched, std::vector<TokenId> tokens)
    : publisher_(publisher),
      origin_(origin),
      names_(fetched.names),
      chain_(fetched.chain),
      sources_(fetched.sources),
      tokens_(std::move(tokens)) {}

void KvPublication::publish(const kvnode::ChainPtr& chain, std::size_t blocks) {
    std::vector<KvPublisher::Block> fresh;
    for (; published_ < blocks; ++published_) {
        const bool computed = published_ >= sources_.size() || sources_[published_].empty();
        fresh.push_back({.index = published_, .is_computed = computed});
    }
    // The last is taken first from the back, so that a chain's beginning gets there before its end.
    std::ranges::reverse(fresh);
    if (!fresh.empty()) publisher_.publish(origin_, chain, std::move(fresh));
}

void KvPublication::on_computed(std::size_t tokens) {
    publish(chain_, std::min(tokens / kBlockTokens, chain_->keys.size()));
}

void KvPublication::on_tokens(std::span<const TokenId> tokens) {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

void KvPublication::on_end() {
    if (tokens_.empty() || chain_->retention == Retention::kNone) return;
    auto whole = std::make_shared<kvnode::Chain>();
    whole->tenant = chain_->tenant;
    whole->retention = chain_->retention;
    whole->keys = names_.keys(std::span(tokens_).first(tokens_.size() - 1));
    const std::size_t blocks = whole->keys.size();
    publish(std::move(whole), blocks);
}

}  // namespace sluice::worker
