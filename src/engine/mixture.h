#pragma once

// The mixture-of-experts part of a layer. Rows choose experts, experts compute their rows together,
// and a row adds up its slots in order, then the shared expert: the same order whatever the batch.

#include <vector>

#include "checkpoint/hyper_parameters.h"
#include "engine/crew.h"
#include "engine/model.h"
#include "tensor/aligned_buffer.h"

namespace sluice::engine {

class Mixture {
public:
    Mixture(const checkpoint::HyperParameters& p, Crew& crew);

    /// Chooses the experts of rows in `range` and computes the shared one. `x` is [rows][width] of the
    /// whole pass.
    void route(const Layer& layer, Lane& lane, const float* x, RowRange range);

    /// What the chosen experts make of the pass; shares the experts out by itself.
    void run_experts(const Layer& layer, const float* x, std::size_t rows);

    /// Adds what they made to `residual` [rows][width].
    void add_output(float* residual, RowRange range);

private:
    struct RoutedToken {
        std::uint32_t row;
        std::uint32_t slot;  ///< Which of the row's chosen experts.
    };

    void choose(const Layer& layer, Lane& lane, std::size_t row);
    void group_rows(std::size_t rows);
    void run_expert(const FeedForward& expert, const std::vector<RoutedToken>& route, Lane& lane,
                    const float* x);

    const checkpoint::HyperParameters& p_;
    Crew& crew_;

    // Of the rows of a pass.
    tensor::FloatBuffer scores_;         ///< Of the router [rows][experts].
    std::vector<std::uint32_t> chosen_;  ///< Experts [rows][experts_used], the best first.
    tensor::FloatBuffer weights_;        ///< Of the chosen experts [rows][experts_used].
    tensor::FloatBuffer slots_;          ///< What they made [rows][experts_used][width].
    tensor::FloatBuffer shared_;         ///< What the shared expert made [rows][width].
    tensor::FloatBuffer sum_;            ///< [rows][width].
    std::vector<std::vector<RoutedToken>> routes_;  ///< Per expert.
    std::vector<std::uint32_t> busy_;               ///< Experts with rows, the busiest first.
};

}  // namespace sluice::engine
