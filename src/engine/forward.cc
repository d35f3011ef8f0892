#include "engine/forward.h"

#include <algorithm>

#include "base/assert.h"
#include "engine/feed_forward.h"
#include "tensor/vector_ops.h"

namespace sluice::engine {
namespace {

/// Rows whose logits are in memory at a time: a vocabulary is large.
constexpr std::size_t kLogitsRows = 32;

Crew::Sizes sizes_of(const Model& model, std::size_t rows) {
    const checkpoint::HyperParameters& p = model.parameters();
    const std::size_t ends = std::size_t{p.width} * (model.mtp() == nullptr ? 1 : 2);
    const std::size_t feed_forward = std::max(
        std::size_t{p.dense_ff}, std::size_t{p.expert_ff} * std::max(p.shared_experts, 1U));
    return {.rows = rows,
            .inputs = std::max({ends, feed_forward, std::size_t{p.q_rank}, std::size_t{p.kv_rank},
                                std::size_t{p.heads} * p.value, std::size_t{p.nope}}),
            .width = p.width,
            .feed_forward = feed_forward,
            .attention_scratch = LatentAttention::scratch(p),
            .experts = p.expert_count,
            .weight_bytes = model.weight_bytes()};
}

}  // namespace

Forward::Forward(std::shared_ptr<const Model> model, ThreadTeam& team, std::size_t rows_max)
    : model_(std::move(model)),
      p_(model_->parameters()),
      output_norm_(&model_->output_norm()),
      team_(team),
      crew_(team, sizes_of(*model_, rows_max)),
      attention_(*model_, crew_),
      mixture_(p_, crew_),
      x_(rows_max * p_.width),
      pair_(model_->mtp() == nullptr ? 0 : crew_.pass_rows() * 2 * p_.width),
      normed_(std::max(crew_.pass_rows(), kLogitsRows) * p_.width),
      dense_(crew_.pass_rows() * p_.width),
      logits_(kLogitsRows * p_.vocabulary) {
    wanted_.reserve(rows_max);
}

void Forward::run(const Batch& batch, KvPool& pool, LogitsSink on_logits) {
    SLUICE_ASSERT(!batch.rows.empty() && batch.rows.size() * p_.width <= x_.size());
    const ThreadTeam::Step step(team_);
    for (std::size_t first = 0; first < batch.rows.size(); first += crew_.pass_rows()) {
        const Pass pass = begin_pass(batch, first, pool);
        crew_.for_ranges([&](Lane&, RowRange range) { embed(pass, range); });
        for (std::size_t index = 0; index < p_.layers; ++index)
            run_layer(pass, model_->layers()[index], index,
                      p_.is_moe_layer(static_cast<std::uint32_t>(index)));
    }
    output_norm_ = &model_->output_norm();
    emit_logits(batch, on_logits);
}

void Forward::run_mtp(const Batch& batch, std::span<const float> hidden, KvPool& pool,
                      LogitsSink on_logits) {
    SLUICE_ASSERT(!batch.rows.empty() && batch.rows.size() * p_.width <= x_.size());
    SLUICE_ASSERT(hidden.size() == batch.rows.size() * p_.width);
    SLUICE_ASSERT(model_->mtp() != nullptr && pool.shape().layers == 1);
    const ThreadTeam::Step step(team_);
    for (std::size_t first = 0; first < batch.rows.size(); first += crew_.pass_rows()) {
        const Pass pass = begin_pass(batch, first, pool);
        crew_.for_ranges([&](Lane& lane, RowRange range) {
            combine(pass, hidden.data() + first * p_.width, lane, range);
        });
        run_layer(pass, model_->mtp()->layer, 0, p_.is_moe_layer(p_.layers));
    }
    output_norm_ = &model_->mtp()->output_norm;
    emit_logits(batch, on_logits);
}

void Forward::hidden(std::size_t row, std::span<float> out) const {
    tensor::rms_norm({x_.data() + row * p_.width, p_.width}, *output_norm_, p_.rms_eps, out);
}

Pass Forward::begin_pass(const Batch& batch, std::size_t first, KvPool& pool) {
    const std::size_t rows = std::min(crew_.pass_rows(), batch.rows.size() - first);
    crew_.begin(rows);
    return {.rows = std::span(batch.rows).subspan(first, rows),
            .block_tables = batch.block_tables,
            .pool = &pool,
            .x = x_.data() + first * p_.width};
}

void Forward::embed(const Pass& pass, RowRange range) {
    for (std::size_t row = range.begin; row < range.end; ++row)
        model_->embed(pass.rows[row].token, {pass.x + row * p_.width, p_.width});
    attention_.rotate_rows(pass, range);
}

// The head's residual stream: each row's embedding and hidden state, normed and projected together.
void Forward::combine(const Pass& pass, const float* hidden, Lane& lane, RowRange range) {
    const MtpHead& head = *model_->mtp();
    const std::size_t width = p_.width;
    embed(pass, range);
    for (std::size_t row = range.begin; row < range.end; ++row) {
        float* pair = pair_.data() + row * 2 * width;
        tensor::rms_norm({pass.x + row * width, width}, head.token_norm, p_.rms_eps, {pair, width});
        tensor::rms_norm({hidden + row * width, width}, head.hidden_norm, p_.rms_eps,
                         {pair + width, width});
    }
    lane.projection.set_input(pair_.data() + range.begin * 2 * width, 2 * width, range.count(),
                              2 * width);
    lane.projection.apply(head.combine, pass.x + range.begin * width, width);
}

void Forward::run_layer(const Pass& pass, const Layer& layer, std::size_t index, bool is_moe) {
    const std::size_t width = p_.width;
    crew_.for_ranges(
        [&](Lane& lane, RowRange range) { attention_.project(pass, layer, index, lane, range); });
    attention_.attend(pass, index);
    crew_.for_ranges([&](Lane& lane, RowRange range) {
        attention_.add_output(pass, layer, lane, range);
        for (std::size_t row = range.begin; row < range.end; ++row)
            tensor::rms_norm({pass.x + row * width, width}, layer.feed_forward_norm, p_.rms_eps,
                             {normed_.data() + row * width, width});
        if (is_moe) return mixture_.route(layer, lane, normed_.data(), range);
        const std::size_t first = range.begin * width;
        feed_forward(layer.dense, lane, normed_.data() + first, range.count(),
                     dense_.data() + first);
        tensor::add_in_place({pass.x + first, range.count() * width},
                             {dense_.data() + first, range.count() * width});
    });
    if (!is_moe) return;
    mixture_.run_experts(layer, normed_.data(), pass.rows.size());
    crew_.for_ranges([&](Lane&, RowRange range) { mixture_.add_output(pass.x, range); });
}

void Forward::emit_logits(const Batch& batch, LogitsSink on_logits) {
    wanted_.clear();
    for (std::size_t row = 0; row < batch.rows.size(); ++row)
        if (batch.rows[row].wants_logits) wanted_.push_back(row);
    Projection& projection = crew_.whole().projection;
    for (std::size_t first = 0; first < wanted_.size(); first += kLogitsRows) {
        const std::size_t count = std::min(kLogitsRows, wanted_.size() - first);
        for (std::size_t i = 0; i < count; ++i)
            tensor::rms_norm({x_.data() + wanted_[first + i] * p_.width, p_.width}, *output_norm_,
                             p_.rms_eps, {normed_.data() + i * p_.width, p_.width});
        projection.set_input(normed_.data(), p_.width, count, p_.width);
        projection.apply(model_->output(), logits_.data(), p_.vocabulary);
        for (std::size_t i = 0; i < count; ++i)
            on_logits(wanted_[first + i], {logits_.data() + i * p_.vocabulary, p_.vocabulary});
    }
}

}  // namespace sluice::engine
