#pragma once

// One pass of the model over a batch of tokens from any number of sequences: DeepSeek V3's
// architecture with multi-head latent attention in the absorbed form over the paged cache, and
// mixture-of-experts layers. What a row's result depends on is its sequence alone; who else is in the
// batch never changes a bit (docs/exactness.md).

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/thread_team.h"
#include "engine/kv_pool.h"
#include "engine/model.h"
#include "engine/projection.h"
#include "tensor/aligned_buffer.h"
#include "tensor/attention.h"

namespace sluice::engine {

/// One token to compute.
struct BatchRow {
    TokenId token = 0;
    std::uint32_t position = 0;
    std::uint32_t origin = 0;    ///< Position that the first row of the sequence's blocks is for.
    std::uint32_t sequence = 0;  ///< Index into Batch::block_tables.
    bool wants_logits = false;
};

struct Batch {
    /// Rows of one sequence are in ascending position; positions before them are in the cache.
    std::vector<BatchRow> rows;
    /// Blocks of each sequence, covering every position of its rows from their origin on.
    std::vector<std::span<const BlockIndex>> block_tables;
};

class Forward {
public:
    /// Called for each row that wants logits, in the batch's order, with [vocabulary] values that
    /// live until it returns.
    using LogitsSink = FunctionRef<void(std::size_t row, std::span<float> logits)>;

    Forward(std::shared_ptr<const Model> model, ThreadTeam& team, std::size_t rows_max);

    /// Writes the rows' keys and values into `pool` and hands out the logits.
    void run(const Batch& batch, KvPool& pool, LogitsSink on_logits);

    /// One pass of the model's MTP head, which must be there. A row is given hidden[row] of its
    /// position, [rows][width], and the token *after* that position; its logits are of the token after
    /// that one. `pool` has one layer, for the head's own keys and values.
    void run_mtp(const Batch& batch, std::span<const float> hidden, KvPool& pool,
                 const LogitsSink& on_logits);

    /// The hidden state of a row of the last pass, normed as the output matrix sees it; [width]
    /// values. What the MTP head takes, from the model and from itself.
    void hidden(std::size_t row, std::span<float> out) const;

private:
    struct RoutedToken {
        std::uint32_t row;
        std::uint32_t slot;  ///< Which of the row's chosen experts.
    };

    void embed(const Batch& batch);
    void combine(const Batch& batch, std::span<const float> hidden);
    void layer(const Layer& layer, std::size_t index, bool is_moe, const Batch& batch,
               KvPool& pool);
    void attention(const Layer& layer, std::size_t layer_index, const Batch& batch, KvPool& pool);
    void project_queries(const Layer& layer, std::size_t rows);
    void store_keys(std::size_t layer_index, const Layer& layer, const Batch& batch, KvPool& pool);
    void attend(std::size_t layer_index, const Batch& batch, KvPool& pool);
    void feed_forward(const FeedForward& block, const float* x, std::size_t rows, std::size_t size,
                      float* y);
    void mixture(const Layer& layer, std::size_t rows);
    void choose_experts(const Layer& layer, std::size_t rows);
    void emit_logits(const Batch& batch, LogitsSink on_logits);
    void normalize(const std::vector<float>& weight, const float* x, std::size_t stride,
                   std::size_t rows, float* y);
    /// Calls work(row) for every row, split over the team where `cost` per row is worth it.
    void for_each_row(std::size_t rows, std::size_t cost,
                      FunctionRef<void(std::size_t row, std::size_t member)> work);

    std::shared_ptr<const Model> model_;
    const checkpoint::HyperParameters& p_;
    const std::vector<float>* output_norm_;  ///< Of the last pass: the model's or the head's.
    ThreadTeam* team_;
    Projection projection_;
    tensor::MlaShape mla_;

    // Activations of one step, row-major.
    tensor::FloatBuffer x_;       ///< Residual stream [rows][width].
    tensor::FloatBuffer pair_;    ///< Inputs of the MTP head [rows][2 * width]; empty without one.
    tensor::FloatBuffer normed_;  ///< [rows][max(width, q_rank)].
    tensor::FloatBuffer q_low_;   ///< [rows][q_rank].
    tensor::FloatBuffer q_;       ///< [rows][heads][nope + rope].
    tensor::FloatBuffer kv_;      ///< [rows][kv_rank + rope].
    tensor::FloatBuffer query_;   ///< Absorbed queries [rows][heads][kv_rank + rope].
    tensor::FloatBuffer latent_;  ///< [rows][heads][kv_rank].
    tensor::FloatBuffer value_;   ///< [rows][heads][value].
    tensor::FloatBuffer branch_;  ///< Output of attention or feed-forward [rows][width].
    tensor::FloatBuffer gate_;    ///< [rows][feed-forward size].
    tensor::FloatBuffer up_;
    tensor::FloatBuffer gathered_;  ///< Inputs of one expert [rows][width].
    tensor::FloatBuffer produced_;  ///< Outputs of one expert [rows][width].
    tensor::FloatBuffer slots_;     ///< Expert outputs [rows][experts_used][width].
    tensor::FloatBuffer scores_;    ///< Router scores [rows][experts].
    tensor::FloatBuffer weights_;   ///< Of the chosen experts [rows][experts_used].
    tensor::FloatBuffer cos_;       ///< [rows][rope / 2].
    tensor::FloatBuffer sin_;
    tensor::FloatBuffer attention_scratch_;         ///< [members][heads * 256].
    tensor::FloatBuffer logits_;                    ///< [kLogitsRows][vocabulary].
    std::vector<std::vector<RoutedToken>> routes_;  ///< Per expert.
    std::vector<std::uint32_t> expert_order_;       ///< Of one row, the best first.
    std::vector<float> expert_keys_;
    std::vector<std::size_t> wanted_;  ///< Rows that want logits.
};

}  // namespace sluice::engine
