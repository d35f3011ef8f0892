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

#if HWY_CAP_GE512
/// Heads that share each load of a row.
inline constexpr std::size_t kScoreHeads = 4;

// One level of the reduction tree for two or more sums at once: blocks of `lower` and `upper` of both
// vectors, added.
template <int kLower, int kUpper>
HWY_INLINE FloatVec add_blocks(FloatVec a, FloatVec b) {
    return FloatVec{_mm512_add_ps(_mm512_shuffle_f32x4(a.raw, b.raw, kLower),
                                  _mm512_shuffle_f32x4(a.raw, b.raw, kUpper))};
}
template <int kLower, int kUpper>
HWY_INLINE FloatVec add_within_blocks(FloatVec a, FloatVec b) {
    return FloatVec{_mm512_add_ps(_mm512_shuffle_ps(a.raw, b.raw, kLower),
                                  _mm512_shuffle_ps(a.raw, b.raw, kUpper))};
}

// The trees +8, +4, +2, +1 of sixteen vectors: element 4·h + r is the sum of lanes[4·r + h].
HWY_INLINE FloatVec sum_sixteen(const FloatVec (&lanes)[kReductionLanes]) {
    FloatVec eight[8];
    FloatVec four[4];
    FloatVec two[2];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < 8; ++i)
        eight[i] = add_blocks<0b01'00'01'00, 0b11'10'11'10>(lanes[2 * i], lanes[2 * i + 1]);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i)
        four[i] = add_blocks<0b10'00'10'00, 0b11'01'11'01>(eight[2 * i], eight[2 * i + 1]);
#pragma GCC unroll 2
    for (std::size_t i = 0; i < 2; ++i)
        two[i] = add_within_blocks<0b01'00'01'00, 0b11'10'11'10>(four[2 * i], four[2 * i + 1]);
    return add_within_blocks<0b10'00'10'00, 0b11'01'11'01>(two[0], two[1]);
}

// Scores of kScoreHeads heads with four rows that follow each other.
HWY_INLINE void score_tile(const float* query, const float* rows, std::size_t width, float scale,
                           float* scores) {
    const Floats d;
    FloatVec lanes[kRowsAtOnce * kScoreHeads];
#pragma GCC unroll 16
    for (FloatVec& lane : lanes) lane = hn::Zero(d);
    for (std::size_t i = 0; i < width; i += kReductionLanes) {
        FloatVec q[kScoreHeads];
#pragma GCC unroll 4
        for (std::size_t h = 0; h < kScoreHeads; ++h) q[h] = hn::LoadU(d, query + h * width + i);
#pragma GCC unroll 4
        for (std::size_t r = 0; r < kRowsAtOnce; ++r) {
            const FloatVec row = hn::LoadU(d, rows + r * width + i);
#pragma GCC unroll 4
            for (std::size_t h = 0; h < kScoreHeads; ++h) {
                FloatVec& lane = lanes[r * kScoreHeads + h];
                lane = hn::MulAdd(q[h], row, lane);
            }
        }
    }
    const FloatVec scaled = hn::Mul(sum_sixteen(lanes), hn::Set(d, scale));
    _mm_storeu_ps(scores, _mm512_castps512_ps128(scaled.raw));
    _mm_storeu_ps(scores + kAttentionSplit, _mm512_extractf32x4_ps(scaled.raw, 1));
    _mm_storeu_ps(scores + 2 * kAttentionSplit, _mm512_extractf32x4_ps(scaled.raw, 2));
    _mm_storeu_ps(scores + 3 * kAttentionSplit, _mm512_extractf32x4_ps(scaled.raw, 3));
}
#else
inline constexpr std::size_t kScoreHeads = 0;  // Too few registers to share rows between heads.
#endif

// Scores of one head with four rows that follow each other.
HWY_INLINE void score_one_head(const float* query, const float* rows, std::size_t width,
                               float scale, float* scores) {
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
    const FourVec dots = sum_of_fours(sum_to_four(lanes[0]), sum_to_four(lanes[1]),
                                      sum_to_four(lanes[2]), sum_to_four(lanes[3]));
    hn::StoreU(hn::Mul(dots, hn::Set(Four(), scale)), Four(), scores);
}

// scores[head][i] for the positions begin + i of one split. Whole groups of four are computed: their
// rows are in the same page, and what lies beyond `count` is overwritten before it is used.
HWY_INLINE void score_split(const MlaShape& shape, const float* query, const PagedRows& pages,
                            std::size_t begin, std::size_t count, float* scores) {
    const std::size_t width = shape.width();
    for (std::size_t page = 0; page < count; page += shape.page_positions) {
        const float* rows = row_at(shape, pages, begin + page);
        const std::size_t here = std::min(count - page, shape.page_positions);
        std::size_t head = 0;
#if HWY_CAP_GE512
        for (; head + kScoreHeads <= shape.heads; head += kScoreHeads)
            for (std::size_t i = 0; i < here; i += kRowsAtOnce)
                score_tile(query + head * width, rows + i * width, width, shape.scale,
                           scores + head * kAttentionSplit + page + i);
#endif
        for (; head < shape.heads; ++head)
            for (std::size_t i = 0; i < here; i += kRowsAtOnce)
                score_one_head(query + head * width, rows + i * width, width, shape.scale,
                               scores + head * kAttentionSplit + page + i);
    }
}

// Largest of whole groups of 16. A NaN is passed over: it reaches the sum by its own exp.
HWY_INLINE float largest_score(const float* scores, std::size_t padded) {
    const Floats d;
    FloatVec largest = hn::Set(d, -HUGE_VALF);
    for (std::size_t i = 0; i < padded; i += kLanes) {
        const FloatVec score = hn::LoadU(d, scores + i);
        largest = hn::IfThenElse(hn::Gt(score, largest), score, largest);
    }
    // The maximum is the same in any order, so Highway's reduction is safe here.
    return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// scores[i] = e^(scores[i] − largest) over whole groups of 16; returns their sum.
HWY_INLINE float exp_scores(float* scores, std::size_t padded, float largest) {
    const Floats d;
    const FloatVec shift = hn::Set(d, largest);
    FloatVec lanes[kGroup];
    for (FloatVec& lane : lanes) lane = hn::Zero(d);
    for (std::size_t i = 0; i < padded; i += kReductionLanes) {
#pragma GCC unroll 4
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

// Turns the scores of a head into weights and updates its running softmax. The last group of 16 is
// filled up with −∞, whose weight is 0.
HWY_INLINE FoldFactors weigh_split(float* scores, std::size_t count, SoftmaxState& state) {
    const std::size_t padded = (count + kReductionLanes - 1) / kReductionLanes * kReductionLanes;
    for (std::size_t i = count; i < padded; ++i) scores[i] = -HUGE_VALF;
    const float largest = largest_score(scores, padded);
    const float sum = exp_scores(scores, padded, largest);
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
    const Floats d;
    for (std::size_t head = 0; head < shape.heads; ++head) {
        const FloatVec sum = hn::Set(d, states[head].sum);
        float* row = out + head * shape.latent;
        for (std::size_t j = 0; j < shape.latent; j += kLanes)
            hn::StoreU(hn::Div(hn::LoadU(d, row + j), sum), d, row + j);
    }
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
