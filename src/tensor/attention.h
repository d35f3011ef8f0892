#pragma once

// Attention of multi-head latent attention (MLA) in the absorbed form, over a paged cache.
//
// The cache holds one row per position: `latent` values shared by all heads, then `rope` rotated
// values. A query head is a vector of the same width, so a score is one dot product with the row,
// and the output is the weighted sum of latents.
//
// Order (docs/exactness.md, rule 7): positions are cut into splits of 256 by absolute position, each
// split has its own maximum, and splits are combined in ascending order by the same code even if
// there is only one. So a query's bits depend on its position and the cache's bytes alone.

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::tensor {

inline constexpr std::size_t kAttentionSplit = 256;  ///< Positions.

struct MlaShape {
    std::size_t heads = 0;
    std::size_t latent = 0;          ///< Multiple of 16.
    std::size_t rope = 0;            ///< Multiple of 16.
    std::size_t page_positions = 0;  ///< In a page; a multiple of 4 that divides kAttentionSplit.
    float scale = 1.0F;              ///< Multiplies every score.

    [[nodiscard]] std::size_t width() const { return latent + rope; }
    /// Floats of scratch that one call needs.
    [[nodiscard]] std::size_t scratch() const { return heads * kAttentionSplit; }
};

/// Rows of one sequence and layer, scattered over pages: page i starts at base + index[i] · stride.
struct PagedRows {
    const float* base = nullptr;
    std::size_t stride = 0;  ///< Floats from one page to the next.
    std::span<const std::uint32_t> index;
};

/// `query` [heads][width], `positions` ≥ 1 the rows that count, `out` [heads][latent]. Rows up to the
/// next multiple of 4 are read, too; what they hold makes no difference.
void mla_attention(const MlaShape& shape, const float* query, const PagedRows& pages,
                   std::size_t positions, float* out, std::span<float> scratch);

}  // namespace sluice::tensor
