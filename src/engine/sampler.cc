#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/assert.h"
#include "tensor/gumbel.h"
#include "tensor/vector_ops.h"

namespace sluice::engine {
namespace {

constexpr float kMasked = -HUGE_VALF;
/// Most distributions need no more than this many tokens sorted.
constexpr std::size_t kFirstSorted = 64;

// The largest value, the first of equals; no value is NaN.
TokenId first_largest(std::span<const float> values) {
    const float largest = tensor::max_or_nan(values);
    return static_cast<TokenId>(std::ranges::find(values, largest) - values.begin());
}

// Brings the `count` best of `order` to its front in (value descending, id ascending) order.
void sort_front(std::vector<TokenId>& order, std::size_t count, std::span<const float> values) {
    const auto better = [&](TokenId a, TokenId b) {
        const float first = values[static_cast<std::size_t>(a)];
        const float second = values[static_cast<std::size_t>(b)];
        return first != second ? first > second : a < b;
    };
    std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count), better);
}

}  // namespace

SamplerScratch::SamplerScratch(std::size_t vocabulary)
    : values(vocabulary), exponentials(vocabulary), order(vocabulary), unchanged(vocabulary) {}

Sampler::Sampler(const SamplingParams& params, std::span<const TokenId> end_tokens,
                 std::span<const TokenId> prompt)
    : params_(params), end_tokens_(end_tokens.begin(), end_tokens.end()) {
    has_penalties_ = params_.frequency_penalty != 0.0F || params_.presence_penalty != 0.0F ||
                     params_.repetition_penalty != 1.0F;
    if (!has_penalties_) return;
    std::vector<TokenId> known;
    if (params_.repetition_penalty != 1.0F) known.assign(prompt.begin(), prompt.end());
    std::ranges::sort(known);
    const auto repeated = std::ranges::unique(known);
    known.erase(repeated.begin(), repeated.end());
    counts_.reserve(known.size() + params_.max_new_tokens);
    for (const TokenId token : known) counts_.push_back({.token = token, .in_output = 0});
}

void Sampler::accept(TokenId token) {
    ++output_tokens_;
    if (!has_penalties_) return;
    auto at = std::ranges::lower_bound(counts_, token, {}, &Count::token);
    if (at == counts_.end() || at->token != token)
        at = counts_.insert(at, {.token = token, .in_output = 0});
    ++at->in_output;
}

bool Sampler::is_stop(TokenId token) const {
    const bool ends = std::ranges::find(end_tokens_, token) != end_tokens_.end();
    if (ends && !params_.ignore_eos) return true;
    return std::ranges::find(params_.stop_token_ids, token) != params_.stop_token_ids.end();
}

void Sampler::apply_penalties(std::span<float> logits) const {
    for (const auto& [token, count] : counts_) {
        float& logit = logits[static_cast<std::size_t>(token)];
        if (params_.repetition_penalty != 1.0F)
            logit = logit > 0.0F ? logit / params_.repetition_penalty
                                 : logit * params_.repetition_penalty;
        if (count == 0) continue;
        logit -= params_.frequency_penalty * static_cast<float>(count);
        logit -= params_.presence_penalty;
    }
}

void Sampler::mask_stops(std::span<float> logits) const {
    if (output_tokens_ >= params_.min_new_tokens) return;
    for (const TokenId token : params_.stop_token_ids)
        logits[static_cast<std::size_t>(token)] = kMasked;
    if (params_.ignore_eos) return;
    for (const TokenId token : end_tokens_) logits[static_cast<std::size_t>(token)] = kMasked;
}

Result<TokenId> Sampler::pick(std::span<float> logits, std::uint64_t position,
                              SamplerScratch& scratch) const {
    if (std::isnan(tensor::max_or_nan(logits)))
        return std::unexpected(Error(ErrorCode::kInternal, "the model produced a NaN logit"));
    if (has_penalties_) apply_penalties(logits);
    for (const auto& [token, bias] : params_.logit_bias)
        logits[static_cast<std::size_t>(token)] += bias;
    mask_stops(logits);
    if (params_.temperature == 0.0F) return first_largest(logits);
    // Relative to the best, so that a tiny temperature can't make everything infinite.
    const float best = tensor::max_or_nan(logits);
    for (float& logit : logits) logit = (logit - best) / params_.temperature;
    if (params_.top_k > 0 || params_.top_p < 1.0F || params_.min_p > 0.0F)
        return draw_filtered(logits, position, scratch);
    tensor::add_gumbel_noise({.seed = params_.seed, .stream = 0, .position = position}, logits);
    return first_largest(logits);
}

TokenId Sampler::draw_filtered(std::span<float> logits, std::uint64_t position,
                               SamplerScratch& scratch) const {
    const std::size_t vocabulary = logits.size();
    std::vector<TokenId>& order = scratch.order;
    std::iota(order.begin(), order.end(), 0);
    std::size_t allowed = vocabulary;
    if (params_.top_k > 0) allowed = std::min(allowed, static_cast<std::size_t>(params_.top_k));

    // Probabilities are relative to the best token's, whose logit is 0 here; what top-k drops counts
    // for nothing. The sorted front is grown only as far as the filters need it.
    std::size_t sorted = allowed < vocabulary ? allowed : std::min(kFirstSorted, vocabulary);
    sort_front(order, sorted, logits);
    const std::span<float> weights(scratch.exponentials);
    std::ranges::copy(logits, weights.begin());
    if (allowed < vocabulary) {
        std::ranges::fill(weights, kMasked);
        for (std::size_t i = 0; i < allowed; ++i) {
            const auto token = static_cast<std::size_t>(order[i]);
            weights[token] = logits[token];
        }
    }
    const float total = tensor::exp_in_place(weights, 0.0F);

    std::size_t kept = 0;
    float sum = 0.0F;
    while (kept < allowed) {
        if (kept == sorted) {
            sorted = std::min(allowed, sorted * 8);
            sort_front(order, sorted, logits);
        }
        const float weight = weights[static_cast<std::size_t>(order[kept])];
        // The best token always stays.
        if (kept > 0 && (weight < params_.min_p || sum >= params_.top_p * total)) break;
        sum += weight;
        ++kept;
    }

    // Noise is a function of the token, so drawing over the survivors equals drawing over all of them
    // with the others masked.
    const std::span<float> noise(scratch.values);
    std::ranges::fill(noise, 0.0F);
    tensor::add_gumbel_noise({.seed = params_.seed, .stream = 0, .position = position}, noise);
    TokenId winner = order[0];
    float highest = kMasked;
    for (std::size_t i = 0; i < kept; ++i) {
        const auto token = static_cast<std::size_t>(order[i]);
        const float value = logits[token] + noise[token];
        if (value > highest || (value == highest && order[i] < winner)) {
            highest = value;
            winner = order[i];
        }
    }
    return winner;
}

PositionLogprobs position_logprobs(std::span<const float> logits, TokenId token, std::uint32_t top,
                                   SamplerScratch& scratch) {
    const float log_sum = tensor::log_sum_exp(logits, scratch.exponentials);
    const auto entry = [&](TokenId each) {
        return TokenLogprob{.token = each,
                            .logprob = logits[static_cast<std::size_t>(each)] - log_sum};
    };
    PositionLogprobs result{.chosen = entry(token), .top = {}};
    if (top == 0) return result;
    const std::size_t count = std::min<std::size_t>(top, logits.size());
    std::iota(scratch.order.begin(), scratch.order.end(), 0);
    sort_front(scratch.order, count, logits);
    for (std::size_t i = 0; i < count; ++i) result.top.push_back(entry(scratch.order[i]));
    return result;
}

}  // namespace sluice::engine
