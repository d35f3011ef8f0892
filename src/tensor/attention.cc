#include "tensor/attention.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/assert.h"
#include "tensor/softmax_state.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/attention.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "tensor/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::tensor::HWY_NAMESPACE {

HWY_INLINE float dot_row(const float* a, const float* b, std::size_t width) {
    const Floats d;
    FloatVec lanes[kGroup];
    for (FloatVec& lane : lanes) lane = hn::Zero(d);
    for (std::size_t i = 0; i < width; i += kReductionLanes) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kGroup; ++v)
            lanes[v] = hn::MulAdd(hn::LoadU(d, a + i + v * kLanes),
                                  hn::LoadU(d, b + i + v * kLanes), lanes[v]);
    }
    return tree_sum(lanes);
}

HWY_INLINE const float* row_at(const MlaShape& shape, const PagedRows& pages,
                               std::size_t position) {
    return pages.base + pages.index[position / shape.page_positions] * pages.stride +
           position % shape.page_positions * shape.width();
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

// Folds one split of one head into its running state and output.
HWY_INLINE void fold_split(const MlaShape& shape, const PagedRows& pages, std::size_t begin,
                           std::size_t count, float* scores, SoftmaxState& state, float* out) {
    const Floats d;
    float largest = -HUGE_VALF;
    for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, scores[i]);
    const float sum = exp_scores(scores, count, largest);
    const float together = std::max(state.largest, largest);
    const float keep = exp_one(state.largest - together);
    const float add = exp_one(largest - together);
    for (std::size_t j = 0; j < shape.latent; j += kReductionLanes) {
        FloatVec split[kGroup];
        for (FloatVec& lane : split) lane = hn::Zero(d);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t position = begin + i;
            const float* row = row_at(shape, pages, position);
            const FloatVec weight = hn::Set(d, scores[i]);
            for (std::size_t v = 0; v < kGroup; ++v)
                split[v] = hn::MulAdd(weight, hn::LoadU(d, row + j + v * kLanes), split[v]);
        }
        for (std::size_t v = 0; v < kGroup; ++v) {
            float* at = out + j + v * kLanes;
            const FloatVec kept = hn::Mul(hn::LoadU(d, at), hn::Set(d, keep));
            hn::StoreU(hn::MulAdd(split[v], hn::Set(d, add), kept), d, at);
        }
    }
    state.sum = state.sum * keep + sum * add;
    state.largest = together;
}

HWY_ATTR void mla_attention_kernel(const MlaShape& shape, const float* query,
                                   const PagedRows& pages, std::size_t positions, float* out,
                                   float* scratch, SoftmaxState* states) {
    const std::size_t width = shape.width();
    std::fill(out, out + shape.heads * shape.latent, 0.0F);
    for (std::size_t begin = 0; begin < positions; begin += kAttentionSplit) {
        const std::size_t count = std::min(kAttentionSplit, positions - begin);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t position = begin + i;
            const float* row = row_at(shape, pages, position);
            for (std::size_t head = 0; head < shape.heads; ++head)
                scratch[head * kAttentionSplit + i] =
                    dot_row(query + head * width, row, width) * shape.scale;
        }
        for (std::size_t head = 0; head < shape.heads; ++head)
            fold_split(shape, pages, begin, count, scratch + head * kAttentionSplit, states[head],
                       out + head * shape.latent);
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
    constexpr std::size_t kHeadsAtOnce = 64;
    SLUICE_ASSERT(positions > 0 && positions <= pages.index.size() * shape.page_positions);
    SLUICE_ASSERT(shape.latent % kReductionLanes == 0 && shape.rope % kReductionLanes == 0);
    SLUICE_ASSERT(kAttentionSplit % shape.page_positions == 0);
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
