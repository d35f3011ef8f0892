#include "tensor/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/assert.h"
#include "tensor/softmax_state.h"

#ifndef SLUICE_TENSOR_ATTENTION_CONSTANTS
#define SLUICE_TENSOR_ATTENTION_CONSTANTS
namespace sluice::tensor {
/// Heads of one call of the kernel, so that their states fit on the stack.
inline constexpr std::size_t kHeadsAtOnce = 64;
}  // namespace sluice::tensor
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/attention.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "tensor/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::tensor::HWY_NAMESPACE {

HWY_INLINE const float* row_at(const MlaShape& shape, const PagedRows& pages,
                               std::size_t position) {
    return pages.base + pages.index[position / shape.page_positions] * pages.stride +
           position % shape.page_positions * shape.width();
}

/// Rows whose dot products are summed together.
inline constexpr std::size_t kRowsAtOnce = 4;

// The dot products of `query` with four rows that follow each other.
HWY_INLINE FourVec dot_rows(const float* query, const float* rows, std::size_t width) {
    const Floats d;
    FloatVec lanes[kRowsAtOnce][kGroup];
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kRowsAtOnce; ++r)
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kGroup; ++v) lanes[r][v] = hn::Zero(d);
    for (std::size_t i = 0; i < width; i += kReductionLanes) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kGroup; ++v) {
            const FloatVec q = hn::LoadU(d, query + i + v * kLanes);
#pragma GCC unroll 4
            for (std::size_t r = 0; r < kRowsAtOnce; ++r)
                lanes[r][v] =
                    hn::MulAdd(q, hn::LoadU(d, rows + r * width + i + v * kLanes), lanes[r][v]);
        }
    }
    return sum_of_fours(sum_to_four(lanes[0]), sum_to_four(lanes[1]), sum_to_four(lanes[2]),
                        sum_to_four(lanes[3]));
}

// scores[head][i] for the positions begin + i of one split. Whole groups of four are computed: their
// rows are in the same page, and what lies beyond `count` is overwritten before it is used.
HWY_INLINE void score_split(const MlaShape& shape, const float* query, const PagedRows& pages,
                            std::size_t begin, std::size_t count, float* scores) {
    const FourVec scale = hn::Set(Four(), shape.scale);
    const std::size_t width = shape.width();
    for (std::size_t i = 0; i < count; i += kRowsAtOnce) {
        const float* rows = row_at(shape, pages, begin + i);
        for (std::size_t head = 0; head < shape.heads; ++head) {
            const FourVec dots = dot_rows(query + head * width, rows, width);
            hn::StoreU(hn::Mul(dots, scale), Four(), scores + head * kAttentionSplit + i);
        }
    }
}

// scores[i] = e^(scores[i] − largest); returns their sum. `count` ≤ 256; the rest of the last group of
// 16 is overwritten.
HWY_INLINE float exp_scores(float* scores, std::size_t count, float largest) {
    const Floats d;
    const std::size_t padded = (count + kReductionLanes - 1) / kReductionLanes * kReductionLanes;
    for (std::size_t i = count; i < padded; ++i) scores[i] = -HUGE_VALF;
    const FloatVec shift = hn::Set(d, largest);
    FloatVec lanes[kGroup];
    for (FloatVec& lane : lanes) lane = hn::Zero(d);
    for (std::size_t i = 0; i < padded; i += kReductionLanes) {
        for (std::size_t v = 0; v < kGroup; ++v) {
            float* at = scores + i + v * kLanes;
            const FloatVec e = exp_vec(hn::Sub(hn::LoadU(d, at), shift));
            hn::StoreU(e, d, at);
            lanes[v] = hn::Add(lanes[v], e);
        }
    }
    return tree_sum(lanes);
}

/// What a split does to the output of a head: out = out · keep + split · add.
struct FoldFactors {
    float keep;
    float add;
};

// Weighted sums of latents [first, first + kVectors · lanes) for kHeads heads, in registers: each is
// one chain over ascending positions.
template <std::size_t kHeads, std::size_t kVectors>
HWY_INLINE void fold_values(const MlaShape& shape, const PagedRows& pages, std::size_t begin,
                            std::size_t count, const float* weights, const FoldFactors* factors,
                            std::size_t first, float* out) {
    const Floats d;
    FloatVec split[kHeads][kVectors];
#pragma GCC unroll 8
    for (std::size_t h = 0; h < kHeads; ++h)
#pragma GCC unroll 8
        for (std::size_t v = 0; v < kVectors; ++v) split[h][v] = hn::Zero(d);
    for (std::size_t page = 0; page < count; page += shape.page_positions) {
        const float* row = row_at(shape, pages, begin + page) + first;
        const std::size_t end = std::min(count, page + shape.page_positions);
        for (std::size_t i = page; i < end; ++i, row += shape.width()) {
            FloatVec latents[kVectors];
#pragma GCC unroll 8
            for (std::size_t v = 0; v < kVectors; ++v) latents[v] = hn::LoadU(d, row + v * kLanes);
#pragma GCC unroll 8
            for (std::size_t h = 0; h < kHeads; ++h) {
                const FloatVec weight = hn::Set(d, weights[h * kAttentionSplit + i]);
#pragma GCC unroll 8
                for (std::size_t v = 0; v < kVectors; ++v)
                    split[h][v] = hn::MulAdd(weight, latents[v], split[h][v]);
            }
        }
    }
    for (std::size_t h = 0; h < kHeads; ++h) {
        for (std::size_t v = 0; v < kVectors; ++v) {
            float* at = out + h * shape.latent + first + v * kLanes;
            const FloatVec kept = hn::Mul(hn::LoadU(d, at), hn::Set(d, factors[h].keep));
            hn::StoreU(hn::MulAdd(split[h][v], hn::Set(d, factors[h].add), kept), d, at);
        }
    }
}

template <std::size_t kHeads>
HWY_INLINE void fold_heads(const MlaShape& shape, const PagedRows& pages, std::size_t begin,
                           std::size_t count, const float* weights, const FoldFactors* factors,
                           float* out) {
    constexpr std::size_t kWide = 4;
    std::size_t first = 0;
    for (; first + kWide * kLanes <= shape.latent; first += kWide * kLanes)
        fold_values<kHeads, kWide>(shape, pages, begin, count, weights, factors, first, out);
    for (; first < shape.latent; first += kReductionLanes)
        fold_values<kHeads, kGroup>(shape, pages, begin, count, weights, factors, first, out);
}

// Turns the scores of a head into weights and updates its running softmax.
HWY_INLINE FoldFactors weigh_split(float* scores, std::size_t count, SoftmaxState& state) {
    float largest = -HUGE_VALF;
    for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, scores[i]);
    const float sum = exp_scores(scores, count, largest);
    const float together = std::max(state.largest, largest);
    const FoldFactors factors{exp_one(state.largest - together), exp_one(largest - together)};
    state.sum = state.sum * factors.keep + sum * factors.add;
    state.largest = together;
    return factors;
}

HWY_ATTR void mla_attention_kernel(const MlaShape& shape, const float* query,
                                   const PagedRows& pages, std::size_t positions, float* out,
                                   float* scratch, SoftmaxState* states) {
    constexpr std::size_t kHeadsTile = HWY_CAP_GE512 ? 4 : 2;
    std::fill(out, out + shape.heads * shape.latent, 0.0F);
    FoldFactors factors[kHeadsAtOnce];
    for (std::size_t begin = 0; begin < positions; begin += kAttentionSplit) {
        const std::size_t count = std::min(kAttentionSplit, positions - begin);
        score_split(shape, query, pages, begin, count, scratch);
        for (std::size_t head = 0; head < shape.heads; ++head)
            factors[head] = weigh_split(scratch + head * kAttentionSplit, count, states[head]);
        std::size_t head = 0;
        for (; head + kHeadsTile <= shape.heads; head += kHeadsTile)
            fold_heads<kHeadsTile>(shape, pages, begin, count, scratch + head * kAttentionSplit,
                                   factors + head, out + head * shape.latent);
        for (; head < shape.heads; ++head)
            fold_heads<1>(shape, pages, begin, count, scratch + head * kAttentionSplit,
                          factors + head, out + head * shape.latent);
    }
    for (std::size_t head = 0; head < shape.heads; ++head)
        for (std::size_t j = 0; j < shape.latent; ++j)
            out[head * shape.latent + j] /= states[head].sum;
}

}  // namespace sluice::tensor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::tensor {

HWY_EXPORT(mla_attention_kernel);

void mla_attention(const MlaShape& shape, const float* query, const PagedRows& pages,
                   std::size_t positions, float* out, std::span<float> scratch) {
    SLUICE_ASSERT(positions > 0 && positions <= pages.index.size() * shape.page_positions);
    SLUICE_ASSERT(shape.latent % kReductionLanes == 0 && shape.rope % kReductionLanes == 0);
    SLUICE_ASSERT(kAttentionSplit % shape.page_positions == 0 && shape.page_positions % 4 == 0);
    SLUICE_ASSERT(scratch.size() >= shape.scratch());
    for (std::size_t first = 0; first < shape.heads; first += kHeadsAtOnce) {
        MlaShape part = shape;
        part.heads = std::min(kHeadsAtOnce, shape.heads - first);
        std::array<SoftmaxState, kHeadsAtOnce> states;
        HWY_DYNAMIC_DISPATCH(mla_attention_kernel)
        (part, query + first * shape.width(), pages, positions, out + first * shape.latent,
         scratch.data() + first * kAttentionSplit, states.data());
    }
}

}  // namespace sluice::tensor
#endif  // HWY_ONCE
