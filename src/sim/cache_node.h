#pragma once

// One node of a simulated cache that engines share: so many blocks by key, of which the one that goes
// when room is needed is chosen as in earnest (kv::WorthOrder) or by one of the policies that it is
// compared with. As in kv::DramTier, blocks go from the tail of their chain.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/block_cache.h"

namespace sluice::sim {

enum class CachePolicy : std::uint8_t {
    kWorth,      ///< kv::WorthOrder, all blocks equally expensive: what tiers use.
    kAttention,  ///< The same, where a block costs more the further back it stands.
    kLru,
    kS3Fifo,
};
/// "worth", "attention", "lru", "s3fifo"
[[nodiscard]] std::string_view to_string(CachePolicy policy);
[[nodiscard]] std::optional<CachePolicy> parse_cache_policy(std::string_view name);

class CacheNode {
public:
    virtual ~CacheNode() = default;
    [[nodiscard]] virtual bool contains(BlockKey key) const = 0;
    /// It is here.
    virtual void use(BlockKey key) = 0;
    /// Nothing if it is here, or if no room can be made. `parent` is 0 for the first of a chain.
    virtual void store(BlockKey key, BlockKey parent, float cost) = 0;
    [[nodiscard]] virtual std::uint32_t blocks() const = 0;
    [[nodiscard]] virtual std::uint64_t evictions() const = 0;

    /// Hears of each block that was stored, or is gone.
    using Watch = std::function<void(BlockKey key, bool stored)>;
    void watch(Watch watch) { watch_ = std::move(watch); }

protected:
    void tell(BlockKey key, bool stored) const {
        if (watch_) watch_(key, stored);
    }

private:
    Watch watch_;
};

[[nodiscard]] std::unique_ptr<CacheNode> make_cache_node(CachePolicy policy, std::uint32_t blocks);

}  // namespace sluice::sim
