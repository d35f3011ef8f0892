#pragma once

// One pass of the model over a batch of tokens from any number of sequences: DeepSeek V3's
// architecture with multi-head latent attention in the absorbed form over the paged cache, and
// mixture-of-experts layers. What a row's result depends on is its sequence alone; who else is in the
// batch never changes a bit (docs/exactness.md).

#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/thread_team.h"
#include "engine/batch.h"
#include "engine/crew.h"
#include "engine/latent_attention.h"
#include "engine/mixture.h"
#include "engine/model.h"
#include "tensor/aligned_buffer.h"

namespace sluice::engine {

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
                 LogitsSink on_logits);

    /// The hidden state of a row of the last pass, normed as the output matrix sees it; [width]
    /// values. What the MTP head takes, from the model and from itself.
    void hidden(std::size_t row, std::span<float> out) const;

private:
    /// The rows of `batch` from `first` on that go through the layers together.
    Pass begin_pass(const Batch& batch, std::size_t first, KvPool& pool);
    void embed(const Pass& pass, RowRange range);
    void combine(const Pass& pass, const float* hidden, Lane& lane, RowRange range);
    void run_layer(const Pass& pass, const Layer& layer, std::size_t index, bool is_moe);
    void emit_logits(const Batch& batch, LogitsSink on_logits);

    std::shared_ptr<const Model> model_;
    const checkpoint::HyperParameters& p_;
    const std::vector<float>* output_norm_;  ///< Of the last pass: the model's or the head's.
    ThreadTeam& team_;
    Crew crew_;
    LatentAttention attention_;
    Mixture mixture_;

    tensor::FloatBuffer x_;     ///< Residual stream of the batch [rows][width].
    tensor::FloatBuffer pair_;  ///< Inputs of the MTP head [pass rows][2 * width], if there is one.
    tensor::FloatBuffer normed_;       ///< [pass rows, or those of logits_][width].
    tensor::FloatBuffer dense_;        ///< Output of a dense feed-forward block [pass rows][width].
    tensor::FloatBuffer logits_;       ///< [kLogitsRows][vocabulary].
    std::vector<std::size_t> wanted_;  ///< Rows that want logits.
};

}  // namespace sluice::engine
