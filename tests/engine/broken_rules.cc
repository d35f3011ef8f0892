#include "tests/engine/broken_rules.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <map>
#include <ranges>
#include <utility>
#include <vector>

#include "engine/forward.h"
#include "engine/lookup_drafter.h"
#include "engine/sampler.h"
#include "tensor/attention.h"
#include "tensor/gumbel.h"
#include "tensor/vector_ops.h"

namespace sluice::engine {
namespace {

using test::Rule;

std::atomic<Rule> broken{Rule::kNone};
std::atomic<const Batch*> batch{nullptr};      // Of the pass that is running.
std::uint32_t picks = 0;                       // In that pass.
std::function<void()> next_pass;               // Called in it, once.
std::map<std::size_t, TokenId> guesses;        // By position; of the last draft.
thread_local const float* slots_of = nullptr;  // The row whose slots are being added.
thread_local std::vector<std::pair<float, std::span<const float>>> slots;  // So far.

/// Whether this is broken, and a pass of the model is running.
bool is_broken(Rule rule) { return broken == rule && batch.load() != nullptr; }

bool is_large_batch() { return batch.load()->rows.size() > 8; }

/// Where the rows of this pass begin in the sequence with these blocks.
std::size_t chunk_begin(std::span<const BlockIndex> blocks) {
    const Batch& now = *batch.load();
    for (const BatchRow& row : now.rows)
        if (now.block_tables[row.sequence].data() == blocks.data()) return row.position;
    return 0;
}

/// Attention of one head in two splits: before the chunk, and the chunk.
void attend_by_chunk(const tensor::MlaShape& shape, const float* query,
                     const tensor::PagedRows& pages, std::size_t positions, float* out) {
    const auto row = [&](std::size_t position) {
        return pages.base + pages.index[position / shape.page_positions] * pages.stride +
               position % shape.page_positions * shape.width();
    };
    const std::size_t begin = std::min(chunk_begin(pages.index), positions);
    float largest = -HUGE_VALF;
    float sum = 0.0F;
    std::fill_n(out, shape.latent, 0.0F);
    for (const auto& [first, last] :
         {std::pair{std::size_t{0}, begin}, std::pair{begin, positions}}) {
        std::vector<float> scores;
        for (std::size_t position = first; position < last; ++position) {
            float dot = 0.0F;
            for (std::size_t i = 0; i < shape.width(); ++i) dot += query[i] * row(position)[i];
            scores.push_back(dot * shape.scale);
        }
        if (scores.empty()) continue;
        const float together = std::max(largest, std::ranges::max(scores));
        const float keep = std::exp(largest - together);
        sum *= keep;
        for (std::size_t j = 0; j < shape.latent; ++j) out[j] *= keep;
        for (std::size_t i = 0; i < scores.size(); ++i) {
            const float weight = std::exp(scores[i] - together);
            sum += weight;
            for (std::size_t j = 0; j < shape.latent; ++j) out[j] += weight * row(first + i)[j];
        }
        largest = together;
    }
    for (std::size_t j = 0; j < shape.latent; ++j) out[j] /= sum;
}

/// Cuts what the pass stored to bf16's precision.
void round_stored(const Batch& rows, KvPool& pool) {
    const KvPool::Shape& shape = pool.shape();
    for (const BatchRow& row : rows.rows) {
        const BlockIndex block = rows.block_tables[row.sequence][row.position / shape.block_tokens];
        for (std::size_t layer = 0; layer < shape.layers; ++layer) {
            float* const at =
                pool.page(layer, block) + row.position % shape.block_tokens * shape.row_floats;
            for (std::size_t i = 0; i < shape.row_floats; ++i)
                at[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(at[i]) & 0xFFFF'0000U);
        }
    }
}

}  // namespace

void test::in_next_pass(std::function<void()> work) { next_pass = std::move(work); }

test::BrokenRule::BrokenRule(Rule rule) {
    guesses.clear();
    broken = rule;
}
test::BrokenRule::~BrokenRule() { broken = Rule::kNone; }

// The linker sends calls of a function to its __wrap_ and calls of __real_ to the function. A member
// function is a free one whose first parameter is `this`.
// NOLINTBEGIN
extern "C" {

#define SLUICE_FORWARD_RUN(prefix) \
    prefix##_ZN6sluice6engine7Forward3runERKNS0_5BatchERNS0_6KvPoolENS_11FunctionRefIFvmSt4spanIfLm18446744073709551615EEEEE
void SLUICE_FORWARD_RUN(__real_)(Forward*, const Batch&, KvPool&, Forward::LogitsSink);
void SLUICE_FORWARD_RUN(__wrap_)(Forward* self, const Batch& rows, KvPool& pool,
                                 Forward::LogitsSink sink) {
    picks = 0;
    if (const auto work = std::exchange(next_pass, nullptr)) work();
    batch = &rows;
    SLUICE_FORWARD_RUN(__real_)(self, rows, pool, sink);
    batch = nullptr;
    if (broken == Rule::kOwnChunkUnrounded) round_stored(rows, pool);
}

#define SLUICE_RMS_NORM(prefix) \
    prefix##_ZN6sluice6tensor8rms_normESt4spanIKfLm18446744073709551615EES3_fS1_IfLm18446744073709551615EE
void SLUICE_RMS_NORM(__real_)(std::span<const float>, std::span<const float>, float,
                              std::span<float>);
void SLUICE_RMS_NORM(__wrap_)(std::span<const float> x, std::span<const float> weight, float eps,
                              std::span<float> y) {
    if (!is_broken(Rule::kSumsFollowBatch) || !is_large_batch())
        return SLUICE_RMS_NORM(__real_)(x, weight, eps, y);
    float sum = 0.0F;
    for (std::size_t i = x.size(); i > 0; --i) sum += x[i - 1] * x[i - 1];
    const float scale = 1.0F / std::sqrt(sum / static_cast<float>(x.size()) + eps);
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight[i];
}

#define SLUICE_MLA_ATTENTION(prefix) \
    prefix##_ZN6sluice6tensor13mla_attentionERKNS0_8MlaShapeEPKfRKNS0_9PagedRowsEmPfSt4spanIfLm18446744073709551615EE
void SLUICE_MLA_ATTENTION(__real_)(const tensor::MlaShape&, const float*, const tensor::PagedRows&,
                                   std::size_t, float*, std::span<float>);
void SLUICE_MLA_ATTENTION(__wrap_)(const tensor::MlaShape& shape, const float* query,
                                   const tensor::PagedRows& pages, std::size_t positions,
                                   float* out, std::span<float> scratch) {
    if (!is_broken(Rule::kSplitsFollowChunk))
        return SLUICE_MLA_ATTENTION(__real_)(shape, query, pages, positions, out, scratch);
    for (std::size_t head = 0; head < shape.heads; ++head)
        attend_by_chunk(shape, query + head * shape.width(), pages, positions,
                        out + head * shape.latent);
}

#define SLUICE_MULTIPLY_ADD(prefix) \
    prefix##_ZN6sluice6tensor12multiply_addESt4spanIfLm18446744073709551615EEfS1_IKfLm18446744073709551615EE
void SLUICE_MULTIPLY_ADD(__real_)(std::span<float>, float, std::span<const float>);
void SLUICE_MULTIPLY_ADD(__wrap_)(std::span<float> sum, float weight, std::span<const float> x) {
    if (!is_broken(Rule::kSlotsFollowBatch) || !is_large_batch())
        return SLUICE_MULTIPLY_ADD(__real_)(sum, weight, x);
    if (slots_of != sum.data()) slots.clear();
    slots_of = sum.data();
    slots.emplace_back(weight, x);
    std::ranges::fill(sum, 0.0F);
    for (const auto& [each, from] : slots | std::views::reverse)
        SLUICE_MULTIPLY_ADD(__real_)(sum, each, from);
}

#define SLUICE_ADD_GUMBEL_NOISE(prefix) \
    prefix##_ZN6sluice6tensor16add_gumbel_noiseERKNS0_8NoiseKeyESt4spanIfLm18446744073709551615EE
void SLUICE_ADD_GUMBEL_NOISE(__real_)(const tensor::NoiseKey&, std::span<float>);
void SLUICE_ADD_GUMBEL_NOISE(__wrap_)(const tensor::NoiseKey& key, std::span<float> x) {
    tensor::NoiseKey used = key;
    if (is_broken(Rule::kNoiseFollowsRow)) used.stream = picks;
    SLUICE_ADD_GUMBEL_NOISE(__real_)(used, x);
}

#define SLUICE_SAMPLER_PICK(prefix) \
    prefix##_ZNK6sluice6engine7Sampler4pickESt4spanIfLm18446744073709551615EEmRNS0_14SamplerScratchE
Result<TokenId> SLUICE_SAMPLER_PICK(__real_)(const Sampler*, std::span<float>, std::uint64_t,
                                             SamplerScratch&);
Result<TokenId> SLUICE_SAMPLER_PICK(__wrap_)(const Sampler* self, std::span<float> logits,
                                             std::uint64_t position, SamplerScratch& scratch) {
    auto token = SLUICE_SAMPLER_PICK(__real_)(self, logits, position, scratch);
    ++picks;
    const auto guess = guesses.find(position);
    if (is_broken(Rule::kDraftsAreNotChecked) && guess != guesses.end()) return guess->second;
    return token;
}

#define SLUICE_DRAFT(prefix) \
    prefix##_ZN6sluice6engine13LookupDrafter5draftESt4spanIKiLm18446744073709551615EEm
std::span<const TokenId> SLUICE_DRAFT(__real_)(LookupDrafter*, std::span<const TokenId>,
                                               std::size_t);
std::span<const TokenId> SLUICE_DRAFT(__wrap_)(LookupDrafter* self, std::span<const TokenId> tokens,
                                               std::size_t most) {
    const auto draft = SLUICE_DRAFT(__real_)(self, tokens, most);
    if (broken != Rule::kDraftsAreNotChecked) return draft;  // Guesses are made between passes.
    guesses.clear();
    for (std::size_t i = 0; i < draft.size(); ++i) guesses[tokens.size() + i] = draft[i];
    return draft;
}

}  // extern "C"
// NOLINTEND

}  // namespace sluice::engine
