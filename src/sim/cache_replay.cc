#include "sim/cache_replay.h"

#include <algorithm>

#include "trace/trace.h"

namespace sluice::sim {
namespace {

double share(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double CacheResults::usable_share() const { return share(usable_tokens, prompt_tokens); }
double CacheResults::usable_block_share() const { return share(usable_blocks, blocks); }
double CacheResults::present_share() const { return share(present_tokens, prompt_tokens); }

CacheResults replay_cache(std::span<const SimWork> work, const SharedCacheOptions& options) {
    SharedCache cache(options);
    CacheResults results;
    for (const SimWork& request : work) {
        const std::vector<BlockKey>& chain = *request.chain;
        const auto tokens = [&](std::uint32_t blocks) {
            return std::min<std::uint64_t>(blocks * std::uint64_t{trace::kTraceBlockTokens},
                                           request.prompt_tokens);
        };
        const std::uint32_t usable = cache.match(chain);
        results.prompt_tokens += request.prompt_tokens;
        results.blocks += chain.size();
        results.usable_blocks += usable;
        results.usable_tokens += tokens(usable);
        results.present_tokens += tokens(cache.count(chain));
        cache.use(chain);
        cache.store(chain);
    }
    results.evictions = cache.evictions();
    results.imbalance = cache.imbalance();
    return results;
}

}  // namespace sluice::sim
