#include "engine/mixture.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/feed_forward.h"
#include "tensor/vector_ops.h"

namespace sluice::engine {

Mixture::Mixture(const checkpoint::HyperParameters& p, Crew& crew)
    : p_(p), crew_(crew), routes_(p.expert_count) {
    if (p.expert_count == 0) return;
    const std::size_t rows = crew.pass_rows();
    scores_ = tensor::FloatBuffer(rows * p.expert_count);
    chosen_.resize(rows * p.experts_used);
    weights_ = tensor::FloatBuffer(rows * p.experts_used);
    slots_ = tensor::FloatBuffer(rows * p.experts_used * p.width);
    shared_ = tensor::FloatBuffer(p.shared_experts > 0 ? rows * p.width : 0);
    sum_ = tensor::FloatBuffer(rows * p.width);
    for (auto& route : routes_) route.reserve(rows);
    busy_.reserve(p.expert_count);
}

void Mixture::route(const Layer& layer, Lane& lane, const float* x, RowRange range) {
    const std::size_t width = p_.width;
    const float* from = x + range.begin * width;
    lane.projection.set_input(from, width, range.count(), width);
    lane.projection.apply(layer.router, scores_.data() + range.begin * p_.expert_count,
                          p_.expert_count);
    for (std::size_t row = range.begin; row < range.end; ++row) choose(layer, lane, row);
    if (p_.shared_experts > 0)
        feed_forward(layer.shared, lane, from, range.count(), shared_.data() + range.begin * width);
}

// Turns the router's outputs into scores, and picks experts by (score + bias descending, id ascending),
// with weights normalised in slot order.
void Mixture::choose(const Layer& layer, Lane& lane, std::size_t row) {
    const std::size_t experts = p_.expert_count;
    const std::size_t used = p_.experts_used;
    const std::span<float> scores{scores_.data() + row * experts, experts};
    if (p_.gating == checkpoint::ExpertGating::kSigmoid) {
        tensor::sigmoid_in_place(scores);
    } else {
        const float sum = tensor::exp_in_place(scores, tensor::max_or_nan(scores));
        for (float& score : scores) score /= sum;
    }
    auto& order = lane.expert_order;
    auto& keys = lane.expert_keys;
    for (std::uint32_t expert = 0; expert < experts; ++expert) {
        order[expert] = expert;
        keys[expert] = scores[expert] + layer.router_bias[expert];
        // An order needs numbers; the NaN itself lives on in the weights and fails the request.
        if (std::isnan(keys[expert])) keys[expert] = -HUGE_VALF;
    }
    std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(used),
                              [&](std::uint32_t a, std::uint32_t b) {
                                  return keys[a] != keys[b] ? keys[a] > keys[b] : a < b;
                              });
    float* weights = weights_.data() + row * used;
    float sum = 0.0F;
    for (std::size_t slot = 0; slot < used; ++slot) {
        chosen_[row * used + slot] = order[slot];
        weights[slot] = scores[order[slot]];
        sum += weights[slot];
    }
    for (std::size_t slot = 0; slot < used; ++slot) {
        if (p_.expert_weights_norm) weights[slot] /= sum + 1e-20F;
        weights[slot] *= p_.expert_weights_scale;
    }
}

void Mixture::group_rows(std::size_t rows) {
    const std::size_t used = p_.experts_used;
    for (auto& route : routes_) route.clear();
    for (std::size_t i = 0; i < rows * used; ++i)
        routes_[chosen_[i]].push_back(
            {static_cast<std::uint32_t>(i / used), static_cast<std::uint32_t>(i % used)});
    busy_.clear();
    for (std::uint32_t expert = 0; expert < p_.expert_count; ++expert)
        if (!routes_[expert].empty()) busy_.push_back(expert);
    // A large one that is started last keeps the others waiting.
    std::ranges::sort(busy_, [this](std::uint32_t a, std::uint32_t b) {
        return routes_[a].size() > routes_[b].size();
    });
}

void Mixture::run_experts(const Layer& layer, const float* x, std::size_t rows) {
    group_rows(rows);
    const std::size_t cost = rows * p_.experts_used * 3 * p_.width * p_.expert_ff;
    crew_.for_items(crew_.whole(), busy_.size(), cost, [&](std::size_t item, Lane& lane) {
        run_expert(layer.experts[busy_[item]], routes_[busy_[item]], lane, x);
    });
}

void Mixture::run_expert(const FeedForward& expert, const std::vector<RoutedToken>& route,
                         Lane& lane, const float* x) {
    const std::size_t width = p_.width;
    const std::size_t bytes = width * sizeof(float);
    for (std::size_t i = 0; i < route.size(); ++i)
        std::memcpy(lane.gathered.data() + i * width, x + route[i].row * width, bytes);
    feed_forward(expert, lane, lane.gathered.data(), route.size(), lane.produced.data());
    for (std::size_t i = 0; i < route.size(); ++i)
        std::memcpy(slots_.data() + (route[i].row * p_.experts_used + route[i].slot) * width,
                    lane.produced.data() + i * width, bytes);
}

void Mixture::add_output(float* residual, RowRange range) {
    const std::size_t width = p_.width;
    const std::size_t used = p_.experts_used;
    for (std::size_t row = range.begin; row < range.end; ++row) {
        const std::span<float> sum{sum_.data() + row * width, width};
        std::ranges::fill(sum, 0.0F);
        for (std::size_t slot = 0; slot < used; ++slot)
            tensor::multiply_add(sum, weights_[row * used + slot],
                                 {slots_.data() + (row * used + slot) * width, width});
        if (p_.shared_experts > 0) tensor::add_in_place(sum, {shared_.data() + row * width, width});
        tensor::add_in_place({residual + row * width, width}, sum);
    }
}

}  // namespace sluice::engine
