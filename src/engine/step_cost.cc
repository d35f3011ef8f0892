#include "engine/step_cost.h"

#include <algorithm>
#include <cmath>

namespace sluice::engine {
namespace {

struct Weights {
    double count = 0.0;
    double bytes = 0.0;

    Weights& operator+=(const tensor::PackedMatrix& matrix) {
        count += static_cast<double>(matrix.outputs() * matrix.inputs());
        bytes += static_cast<double>(matrix.bytes());
        return *this;
    }
    Weights& operator+=(const FeedForward& block) {
        *this += block.gate;
        *this += block.up;
        return *this += block.down;
    }
};

// Of all layers: what every token uses, and experts.
struct ModelWeights {
    Weights common;
    Weights experts;
};

ModelWeights weights_of(const Model& model) {
    ModelWeights all;
    for (const Layer& layer : model.layers()) {
        for (const auto* matrix :
             {&layer.q_a, &layer.q_b, &layer.kv_a, &layer.output, &layer.router})
            all.common += *matrix;
        for (const auto& head : layer.k_b) all.common += head;
        for (const auto& head : layer.v_b) all.common += head;
        all.common += layer.dense;
        all.common += layer.shared;
        for (const FeedForward& expert : layer.experts) all.experts += expert;
    }
    return all;
}

// `rows` tokens, `outputs` of them with logits, `looks` cached rows looked at by all of them together,
// `cached` of them different ones.
StepCost cost(const Model& model, double rows, double outputs, double looks, double cached) {
    const checkpoint::HyperParameters& p = model.parameters();
    const ModelWeights weights = weights_of(model);
    Weights logits;
    logits += model.output();
    const double experts = std::max(1.0, static_cast<double>(p.expert_count));
    const double used = static_cast<double>(p.experts_used) / experts;
    const double width = static_cast<double>(p.kv_rank + p.rope);
    const double layers = static_cast<double>(p.layers);
    return {.matrix_multiply_adds = rows * (weights.common.count + used * weights.experts.count) +
                                    outputs * logits.count,
            .attention_multiply_adds = layers * p.heads * looks * (width + p.kv_rank),
            .bytes = weights.common.bytes + logits.bytes +
                     weights.experts.bytes * (1.0 - std::pow(1.0 - used, rows)) +
                     layers * cached * width * sizeof(float)};
}

}  // namespace

StepCost prompt_cost(const Model& model, std::size_t tokens) {
    const auto rows = static_cast<double>(tokens);
    return cost(model, rows, 1.0, rows * (rows + 1.0) / 2.0, rows);
}

StepCost decode_cost(const Model& model, std::size_t batch, double positions) {
    const auto rows = static_cast<double>(batch);
    return cost(model, rows, rows, rows * positions, rows * positions);
}

}  // namespace sluice::engine
