#include "sim/cache_tiers.h"

#include <algorithm>
#include <numeric>

#include "trace/trace.h"

namespace sluice::sim {
namespace {

constexpr std::array<std::string_view, kCacheSources> kNames{"pool", "dram", "node"};

}  // namespace

std::string_view to_string(CacheSource source) {
    return kNames.at(static_cast<std::size_t>(source));
}

std::uint64_t CachedTokens::sum() const {
    return std::accumulate(by_source.begin(), by_source.end(), std::uint64_t{0});
}

CachedTokens& CachedTokens::operator+=(const CachedTokens& other) {
    for (std::size_t i = 0; i < kCacheSources; ++i) by_source[i] += other.by_source[i];
    return *this;
}

CacheTiers::CacheTiers(const EngineParameters& parameters,
                       const std::optional<SharedCacheOptions>& dram, SharedCache* nodes)
    : parameters_(parameters), options_(dram), nodes_(nodes) {
    restart();
}

void CacheTiers::restart() {
    if (options_) dram_ = std::make_unique<SharedCache>(*options_);
    free_at_ = {};
}

std::optional<CacheSource> CacheTiers::source_of(std::span<const BlockKey> chain,
                                                 std::size_t block) const {
    if (dram_ && dram_->holds(chain, block)) return CacheSource::kDram;
    if (nodes_ != nullptr && nodes_->holds(chain, block)) return CacheSource::kNode;
    return std::nullopt;
}

CacheTiers::Load CacheTiers::load(std::span<const BlockKey> chain, std::uint32_t found,
                                  std::uint32_t tokens, Duration busy, Time now) {
    Load best;
    Load tried;
    StepLoad computing;
    std::array<Time, kCacheSources> free_at = free_at_;
    std::array<Time, kCacheSources> best_free_at = free_at_;
    for (std::uint32_t block = found; block < chain.size(); ++block) {
        const std::uint32_t first = block * trace::kTraceBlockTokens;
        const auto source = source_of(chain, block);
        if (!source || first >= tokens) break;
        const std::uint32_t count = std::min(trace::kTraceBlockTokens, tokens - first);
        Time& free = free_at[static_cast<std::size_t>(*source)];
        const double token_us =
            *source == CacheSource::kDram ? parameters_.dram_token_us : parameters_.node_token_us;
        free = std::max(free, now) + from_microseconds(token_us * count);
        computing.add_prefill(first, count, parameters_.near_tokens);
        tried.tokens.from(*source) += count;
        ++tried.blocks;
        tried.ready = std::max(tried.ready, free);
        // All of it is there before all of it could have been computed.
        const double computed_us = step_microseconds(parameters_, computing) - parameters_.step_us;
        if (tried.ready > now + busy + from_microseconds(computed_us)) continue;
        best = tried;
        best_free_at = free_at;
    }
    free_at_ = best_free_at;
    const auto used = chain.first(std::size_t{found} + best.blocks);
    if (dram_) dram_->use(used);
    if (nodes_ != nullptr) nodes_->use(used);
    store(chain.first(found), 0);
    return best;
}

void CacheTiers::store(std::span<const BlockKey> chain, std::size_t from) {
    if (dram_) dram_->store(chain, from);
    if (nodes_ != nullptr) nodes_->store(chain, from);
}

}  // namespace sluice::sim
