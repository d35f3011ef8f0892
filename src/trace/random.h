#pragma once

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): the same
// numbers on every machine, which the standard's distributions don't promise.

#include <cmath>
#include <cstdint>

namespace sluice::trace {

class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9E3779B97F4A7C15);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        return z ^ (z >> 31);
    }

    /// In [0, 1), with 53 bits.
    double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

    /// Exponential with mean 1: the gaps of a Poisson process.
    double exponential() { return -std::log1p(-uniform()); }

private:
    std::uint64_t state_;
};

}  // namespace sluice::trace
