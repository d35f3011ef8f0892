#pragma once

// Noise for Gumbel-max sampling: the token with the largest logit / temperature + noise is a draw
// from the softmax. Each token's noise is a pure function of (seed, stream, position, token id), so a
// draw depends on nothing that happened before it: not on the batch, not on speculation, not on a
// resume in the middle.
//
// The generator is Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC 2011). Token t is word (t / 16) mod 4 of counter (t / 64 · 16 + t mod 16, position, stream).

#include <cstdint>
#include <span>

namespace sluice::tensor {

struct NoiseKey {
    std::uint64_t seed = 0;
    std::uint32_t stream = 0;  ///< Separates independent uses of one seed, such as choices.
    std::uint64_t position = 0;
};

/// x[t] += −ln(−ln(u(t))) for every token t below x.size().
void add_gumbel_noise(const NoiseKey& key, std::span<float> x);

}  // namespace sluice::tensor
