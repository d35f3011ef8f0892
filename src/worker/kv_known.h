#pragma once

// Names that were seen in a tier not long ago: they need not be left there again. Bounded, and wrong
// at times: what is known is forgotten after some minutes, so that what a tier has lost gets there again.
// Knows no clock.

#include <chrono>
#include <cstddef>
#include <unordered_set>

#include "kv/block_key.h"

namespace sluice::worker {

class KvKnown {
public:
    using Time = std::chrono::steady_clock::time_point;
    /// Names are forgotten after one to two of this, or when twice as many have come since.
    static constexpr std::chrono::minutes kTime{5};
    static constexpr std::size_t kNames = 65'536;

    void add(const kv::BlockKey& key, Time now);
    [[nodiscard]] bool contains(const kv::BlockKey& key, Time now);
    void clear();

private:
    struct Hash {
        std::size_t operator()(const kv::BlockKey& key) const;
    };
    using Names = std::unordered_set<kv::BlockKey, Hash>;
    void age(Time now);

    Names young_;
    Names old_;
    Time since_{};
};

}  // namespace sluice::worker
