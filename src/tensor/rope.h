#pragma once

// Rotary position embedding on interleaved pairs (2i, 2i+1), as in the DeepSeek family.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::tensor {

/// How YaRN stretches a trained context (https://arxiv.org/abs/2309.00071). A factor of 1 is off.
struct YarnParams {
    double factor = 1.0;
    double original_context = 4096.0;  ///< Tokens.
    double beta_fast = 32.0;
    double beta_slow = 1.0;
};

/// Rotation angles of one model. Immutable; shared by threads.
class RopeTable {
public:
    RopeTable() = default;
    /// `dimensions` is even.
    RopeTable(std::size_t dimensions, double theta, const YarnParams& yarn);

    [[nodiscard]] std::size_t dimensions() const { return frequencies_.size() * 2; }

    /// Writes cos and sin of each pair's angle at `position`; both hold dimensions / 2 values.
    void angles(std::uint64_t position, std::span<float> cos, std::span<float> sin) const;

private:
    std::vector<double> frequencies_;
};

/// Rotates one vector in place: (a, b) becomes (a·cos − b·sin, a·sin + b·cos).
void rotate(std::span<float> x, std::span<const float> cos, std::span<const float> sin);

}  // namespace sluice::tensor
