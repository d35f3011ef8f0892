#pragma once

// What lies behind the pool of one simulated engine: memory of its own machine, which goes with the
// process, and cache nodes that it shares with others. As a worker does it (docs/cache.md), a prompt's
// blocks are stored in all tiers as they are computed, and those that the pool lacks are loaded where
// that is predicted to be sooner than computing them.
//
// Loads of one engine from one tier come one after the other. Storing costs nothing; a block that is
// missing ends what can be loaded, though a worker would load what is behind it, too.

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "sim/engine_parameters.h"
#include "sim/event_queue.h"
#include "sim/shared_cache.h"

namespace sluice::sim {

/// Where a prompt's token was that need not be computed.
enum class CacheSource : std::uint8_t { kPool, kDram, kNode };
inline constexpr std::size_t kCacheSources = 3;
/// "pool", "dram", "node"
[[nodiscard]] std::string_view to_string(CacheSource source);

/// Prompt tokens by where they were found.
struct CachedTokens {
    std::array<std::uint64_t, kCacheSources> by_source{};

    [[nodiscard]] std::uint64_t& from(CacheSource source) {
        return by_source[static_cast<std::size_t>(source)];
    }
    [[nodiscard]] std::uint64_t from(CacheSource source) const {
        return by_source[static_cast<std::size_t>(source)];
    }
    [[nodiscard]] std::uint64_t sum() const;
    CachedTokens& operator+=(const CachedTokens& other);
};

class CacheTiers {
public:
    /// Without `dram` the machine keeps nothing but the pool; `nodes`, if not null, outlive this.
    CacheTiers(const EngineParameters& parameters, const std::optional<SharedCacheOptions>& dram,
               SharedCache* nodes);

    struct Load {
        CachedTokens tokens;       ///< None from the pool.
        std::uint32_t blocks = 0;  ///< Behind those that the pool has.
        Time ready{};              ///< If there are any.
    };
    /// A prompt is given its place; the pool has the first `found` blocks of its chain, and other prompts
    /// are computed for `busy` before its turn comes. Starts to load what is worth it, of its first
    /// `tokens` tokens.
    [[nodiscard]] Load load(std::span<const BlockKey> chain, std::uint32_t found,
                            std::uint32_t tokens, Duration busy, Time now);

    /// The blocks of `chain` from `from` on are in the pool now, as all before them are.
    void store(std::span<const BlockKey> chain, std::size_t from);

    /// The process is another one.
    void restart();

private:
    [[nodiscard]] std::optional<CacheSource> source_of(std::span<const BlockKey> chain,
                                                       std::size_t block) const;

    EngineParameters parameters_;
    std::optional<SharedCacheOptions> options_;
    std::unique_ptr<SharedCache> dram_;
    SharedCache* nodes_;
    std::array<Time, kCacheSources> free_at_{};  ///< When what is being loaded from there has come.
};

}  // namespace sluice::sim
