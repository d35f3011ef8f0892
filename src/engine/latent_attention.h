#pragma once

// The attention part of a layer: multi-head latent attention in the absorbed form over the paged
// cache. `project` of all rows comes before `attend` of any, since a row looks back on its own step's.

#include "checkpoint/hyper_parameters.h"
#include "engine/batch.h"
#include "engine/crew.h"
#include "engine/model.h"
#include "tensor/aligned_buffer.h"
#include "tensor/attention.h"

namespace sluice::engine {

class LatentAttention {
public:
    LatentAttention(const Model& model, Crew& crew);

    /// Floats that attention of one row needs in Lane::scores.
    [[nodiscard]] static std::size_t scratch(const checkpoint::HyperParameters& p);

    /// Angles of the rows' positions; once a pass.
    void rotate_rows(const Pass& pass, RowRange range);

    /// Queries of the rows, and their keys into the pool's pages.
    void project(const Pass& pass, const Layer& layer, std::size_t index, Lane& lane,
                 RowRange range);

    /// What each row finds in its past; shares the rows out by itself.
    void attend(const Pass& pass, std::size_t index);

    /// Adds the layer's output to the residual stream.
    void add_output(const Pass& pass, const Layer& layer, Lane& lane, RowRange range);

private:
    void project_queries(const Layer& layer, Lane& lane, RowRange range);
    void attend_heads(const Pass& pass, std::size_t index, std::size_t row, std::size_t head,
                      std::size_t heads, Lane& lane);
    void store_keys(const Pass& pass, const Layer& layer, std::size_t index, RowRange range);
    void rotate(float* x, std::size_t row) const;

    const checkpoint::HyperParameters& p_;
    const tensor::RopeTable& rope_;
    Crew& crew_;
    tensor::MlaShape mla_;

    // Of the rows of a pass.
    tensor::FloatBuffer normed_;  ///< [rows][width].
    tensor::FloatBuffer q_low_;   ///< [rows][q_rank].
    tensor::FloatBuffer q_;       ///< [rows][heads][nope + rope].
    tensor::FloatBuffer kv_;      ///< [rows][kv_rank + rope].
    tensor::FloatBuffer query_;   ///< Absorbed queries [rows][heads][kv_rank + rope].
    tensor::FloatBuffer latent_;  ///< [rows][heads][kv_rank].
    tensor::FloatBuffer value_;   ///< [rows][heads][value].
    tensor::FloatBuffer output_;  ///< [rows][width].
    tensor::FloatBuffer cos_;     ///< [rows][rope / 2].
    tensor::FloatBuffer sin_;
};

}  // namespace sluice::engine
