#include "engine/forward.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/assert.h"
#include "tensor/vector_ops.h"

namespace sluice::engine {
namespace {

/// Rows whose logits are in memory at a time: a vocabulary is large.
constexpr std::size_t kLogitsRows = 32;
/// Cost of one row in elements above which the team is worth gathering.
constexpr std::size_t kTeamElements = 16 * 1024;

std::size_t largest_input(const Model& model) {
    const checkpoint::HyperParameters& p = model.parameters();
    const std::size_t ends = std::size_t{p.width} * (model.mtp() == nullptr ? 1 : 2);
    return std::max({ends, std::size_t{p.q_rank}, std::size_t{p.kv_rank},
                     std::size_t{p.heads} * p.value, std::size_t{p.dense_ff},
                     std::size_t{p.expert_ff} * std::max(p.shared_experts, 1U),
                     std::size_t{p.nope}});
}

std::size_t largest_feed_forward(const checkpoint::HyperParameters& p) {
    return std::max(std::size_t{p.dense_ff},
                    std::size_t{p.expert_ff} * std::max(p.shared_experts, 1U));
}

}  // namespace

Forward::Forward(std::shared_ptr<const Model> model, ThreadTeam& team, std::size_t rows_max)
    : model_(std::move(model)),
      p_(model_->parameters()),
      output_norm_(&model_->output_norm()),
      team_(&team),
      projection_(team, rows_max, largest_input(*model_)),
      mla_{.heads = p_.heads,
           .latent = p_.kv_rank,
           .rope = p_.rope,
           .page_positions = 0,
           .scale = model_->attention_scale()},
      x_(rows_max * p_.width),
      pair_(model_->mtp() == nullptr ? 0 : rows_max * 2 * p_.width),
      normed_(rows_max * std::max(p_.width, p_.q_rank)),
      q_low_(rows_max * std::max(p_.q_rank, 1U)),
      q_(rows_max * p_.heads * p_.key_length()),
      kv_(rows_max * mla_.width()),
      query_(rows_max * p_.heads * mla_.width()),
      latent_(rows_max * p_.heads * p_.kv_rank),
      value_(rows_max * p_.heads * p_.value),
      branch_(rows_max * p_.width),
      gate_(rows_max * largest_feed_forward(p_)),
      up_(rows_max * largest_feed_forward(p_)),
      gathered_(rows_max * p_.width),
      produced_(rows_max * p_.width),
      slots_(rows_max * std::max(p_.experts_used, 1U) * p_.width),
      scores_(rows_max * std::max(p_.expert_count, 1U)),
      weights_(rows_max * std::max(p_.experts_used, 1U)),
      cos_(rows_max * p_.rope / 2),
      sin_(rows_max * p_.rope / 2),
      attention_scratch_(team.size() * mla_.scratch()),
      logits_(kLogitsRows * p_.vocabulary),
      routes_(p_.expert_count),
      expert_order_(p_.expert_count),
      expert_keys_(p_.expert_count) {
    for (auto& route : routes_) route.reserve(rows_max);
    wanted_.reserve(rows_max);
}

void Forward::for_each_row(std::size_t rows, std::size_t cost,
                           FunctionRef<void(std::size_t, std::size_t)> work) {
    if (rows == 1 || rows * cost < kTeamElements || team_->size() == 1) {
        for (std::size_t row = 0; row < rows; ++row) work(row, 0);
        return;
    }
    team_->run([&](std::size_t member) {
        for (std::size_t row = member; row < rows; row += team_->size()) work(row, member);
    });
}

void Forward::run(const Batch& batch, KvPool& pool, LogitsSink on_logits) {
    const std::size_t rows = batch.rows.size();
    SLUICE_ASSERT(rows > 0 && rows * p_.width <= x_.size());
    mla_.page_positions = pool.shape().block_tokens;
    embed(batch);
    for (std::size_t index = 0; index < p_.layers; ++index) {
        layer(model_->layers()[index], index, p_.is_moe_layer(static_cast<std::uint32_t>(index)),
              batch, pool);
    }
    output_norm_ = &model_->output_norm();
    emit_logits(batch, on_logits);
}

void Forward::run_mtp(const Batch& batch, std::span<const float> hidden, KvPool& pool,
                      const LogitsSink& on_logits) {
    const std::size_t rows = batch.rows.size();
    SLUICE_ASSERT(rows > 0 && rows * p_.width <= x_.size() && hidden.size() == rows * p_.width);
    SLUICE_ASSERT(model_->mtp() != nullptr && pool.shape().layers == 1);
    mla_.page_positions = pool.shape().block_tokens;
    combine(batch, hidden);
    layer(model_->mtp()->layer, 0, p_.is_moe_layer(p_.layers), batch, pool);
    output_norm_ = &model_->mtp()->output_norm;
    emit_logits(batch, on_logits);
}

void Forward::hidden(std::size_t row, std::span<float> out) const {
    tensor::rms_norm({x_.data() + row * p_.width, p_.width}, *output_norm_, p_.rms_eps, out);
}

void Forward::layer(const Layer& layer, std::size_t index, bool is_moe, const Batch& batch,
                    KvPool& pool) {
    const std::size_t rows = batch.rows.size();
    attention(layer, index, batch, pool);
    normalize(layer.feed_forward_norm, x_.data(), p_.width, rows, normed_.data());
    if (is_moe) {
        mixture(layer, rows);
    } else {
        feed_forward(layer.dense, normed_.data(), rows, p_.dense_ff, branch_.data());
    }
    tensor::add_in_place({x_.data(), rows * p_.width}, {branch_.data(), rows * p_.width});
}

void Forward::embed(const Batch& batch) {
    const std::size_t half = p_.rope / 2;
    for_each_row(batch.rows.size(), p_.width, [&](std::size_t row, std::size_t) {
        const BatchRow& at = batch.rows[row];
        model_->embed(at.token, {x_.data() + row * p_.width, p_.width});
        model_->rope().angles(at.position, {cos_.data() + row * half, half},
                              {sin_.data() + row * half, half});
    });
}

// The head's residual stream: each row's embedding and hidden state, normed and projected together.
void Forward::combine(const Batch& batch, std::span<const float> hidden) {
    const MtpHead& head = *model_->mtp();
    const std::size_t width = p_.width;
    embed(batch);
    for_each_row(batch.rows.size(), 2 * width, [&](std::size_t row, std::size_t) {
        float* pair = pair_.data() + row * 2 * width;
        tensor::rms_norm({x_.data() + row * width, width}, head.token_norm, p_.rms_eps,
                         {pair, width});
        tensor::rms_norm(hidden.subspan(row * width, width), head.hidden_norm, p_.rms_eps,
                         {pair + width, width});
    });
    projection_.set_input(pair_.data(), 2 * width, batch.rows.size(), 2 * width);
    projection_.apply(head.combine, x_.data(), width);
}

void Forward::normalize(const std::vector<float>& weight, const float* x, std::size_t stride,
                        std::size_t rows, float* y) {
    const std::size_t size = weight.size();
    for_each_row(rows, size, [&](std::size_t row, std::size_t) {
        tensor::rms_norm({x + row * stride, size}, weight, p_.rms_eps, {y + row * size, size});
    });
}

void Forward::attention(const Layer& layer, std::size_t layer_index, const Batch& batch,
                        KvPool& pool) {
    const std::size_t rows = batch.rows.size();
    normalize(layer.attention_norm, x_.data(), p_.width, rows, normed_.data());
    projection_.set_input(normed_.data(), p_.width, rows, p_.width);
    projection_.apply(layer.kv_a, kv_.data(), mla_.width());
    project_queries(layer, rows);
    store_keys(layer_index, layer, batch, pool);
    attend(layer_index, batch, pool);

    const std::size_t values = std::size_t{p_.heads} * p_.value;
    for (std::size_t head = 0; head < p_.heads; ++head) {
        projection_.set_input(latent_.data() + head * p_.kv_rank,
                              std::size_t{p_.heads} * p_.kv_rank, rows, p_.kv_rank);
        projection_.apply(layer.v_b[head], value_.data() + head * p_.value, values);
    }
    projection_.set_input(value_.data(), values, rows, values);
    projection_.apply(layer.output, branch_.data(), p_.width);
    tensor::add_in_place({x_.data(), rows * p_.width}, {branch_.data(), rows * p_.width});
}

// Fills query_ with each head's absorbed query: k_bᵀ·q_nope, then the rotated part. The input of
// projection_ is the normed residual.
void Forward::project_queries(const Layer& layer, std::size_t rows) {
    const std::size_t key = p_.key_length();
    const std::size_t queries = p_.heads * key;
    const std::size_t width = mla_.width();
    if (p_.q_rank > 0) {
        projection_.apply(layer.q_a, q_low_.data(), p_.q_rank);
        normalize(layer.q_a_norm, q_low_.data(), p_.q_rank, rows, normed_.data());
        projection_.set_input(normed_.data(), p_.q_rank, rows, p_.q_rank);
    }
    projection_.apply(layer.q_b, q_.data(), queries);
    for (std::size_t head = 0; head < p_.heads; ++head) {
        projection_.set_input(q_.data() + head * key, queries, rows, p_.nope);
        projection_.apply(layer.k_b[head], query_.data() + head * width, p_.heads * width);
    }
    const std::size_t half = p_.rope / 2;
    for_each_row(rows, p_.heads * p_.rope, [&](std::size_t row, std::size_t) {
        for (std::size_t head = 0; head < p_.heads; ++head) {
            float* to = query_.data() + (row * p_.heads + head) * width + p_.kv_rank;
            std::memcpy(to, q_.data() + row * queries + head * key + p_.nope,
                        p_.rope * sizeof(float));
            tensor::rotate({to, p_.rope}, {cos_.data() + row * half, half},
                           {sin_.data() + row * half, half});
        }
    });
}

// Writes each row's normed latent and rotated key into its page.
void Forward::store_keys(std::size_t layer_index, const Layer& layer, const Batch& batch,
                         KvPool& pool) {
    const std::size_t half = p_.rope / 2;
    const std::size_t width = mla_.width();
    const std::size_t block_tokens = pool.shape().block_tokens;
    for_each_row(batch.rows.size(), width, [&](std::size_t row, std::size_t) {
        const BatchRow& at = batch.rows[row];
        const std::size_t place = at.position - at.origin;
        const BlockIndex block = batch.block_tables[at.sequence][place / block_tokens];
        float* to = pool.page(layer_index, block) + place % block_tokens * width;
        const float* from = kv_.data() + row * width;
        tensor::rms_norm({from, p_.kv_rank}, layer.kv_a_norm, p_.rms_eps, {to, p_.kv_rank});
        std::memcpy(to + p_.kv_rank, from + p_.kv_rank, p_.rope * sizeof(float));
        tensor::rotate({to + p_.kv_rank, p_.rope}, {cos_.data() + row * half, half},
                       {sin_.data() + row * half, half});
    });
}

void Forward::attend(std::size_t layer_index, const Batch& batch, KvPool& pool) {
    const std::size_t width = mla_.width();
    const std::size_t longest =
        std::ranges::max(batch.rows, {}, &BatchRow::position).position + std::size_t{1};
    const std::size_t scratch = mla_.scratch();
    for_each_row(batch.rows.size(), longest * p_.heads * width,
                 [&](std::size_t row, std::size_t member) {
                     const BatchRow& at = batch.rows[row];
                     const tensor::PagedRows pages{.base = pool.layer_base(layer_index),
                                                   .stride = pool.block_stride(),
                                                   .index = batch.block_tables[at.sequence]};
                     tensor::mla_attention(mla_, query_.data() + row * p_.heads * width, pages,
                                           at.position - at.origin + std::size_t{1},
                                           latent_.data() + row * p_.heads * p_.kv_rank,
                                           {attention_scratch_.data() + member * scratch, scratch});
                 });
}

void Forward::feed_forward(const FeedForward& block, const float* x, std::size_t rows,
                           std::size_t size, float* y) {
    projection_.set_input(x, p_.width, rows, p_.width);
    projection_.apply(block.gate, gate_.data(), size);
    projection_.apply(block.up, up_.data(), size);
    for_each_row(rows, size, [&](std::size_t row, std::size_t) {
        float* gate = gate_.data() + row * size;
        tensor::silu_multiply({gate, size}, {up_.data() + row * size, size}, {gate, size});
    });
    projection_.set_input(gate_.data(), size, rows, size);
    projection_.apply(block.down, y, p_.width);
}

// Scores, then the chosen experts of each row by (score + bias descending, id ascending), with
// weights normalised in slot order.
void Forward::choose_experts(const Layer& layer, std::size_t rows) {
    const std::size_t experts = p_.expert_count;
    const std::size_t used = p_.experts_used;
    projection_.set_input(normed_.data(), p_.width, rows, p_.width);
    projection_.apply(layer.router, scores_.data(), experts);
    for (auto& route : routes_) route.clear();
    std::vector<std::uint32_t>& order = expert_order_;
    std::vector<float>& keys = expert_keys_;
    for (std::size_t row = 0; row < rows; ++row) {
        const std::span<float> scores{scores_.data() + row * experts, experts};
        if (p_.gating == checkpoint::ExpertGating::kSigmoid) {
            tensor::sigmoid_in_place(scores);
        } else {
            const float sum = tensor::exp_in_place(scores, tensor::max_or_nan(scores));
            for (float& score : scores) score /= sum;
        }
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
            weights[slot] = scores[order[slot]];
            sum += weights[slot];
            routes_[order[slot]].push_back(
                {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(slot)});
        }
        for (std::size_t slot = 0; slot < used; ++slot) {
            if (p_.expert_weights_norm) weights[slot] /= sum + 1e-20F;
            weights[slot] *= p_.expert_weights_scale;
        }
    }
}

void Forward::mixture(const Layer& layer, std::size_t rows) {
    const std::size_t width = p_.width;
    const std::size_t used = p_.experts_used;
    choose_experts(layer, rows);
    for (std::size_t expert = 0; expert < p_.expert_count; ++expert) {
        const auto& route = routes_[expert];
        if (route.empty()) continue;
        for (std::size_t i = 0; i < route.size(); ++i)
            std::memcpy(gathered_.data() + i * width, normed_.data() + route[i].row * width,
                        width * sizeof(float));
        feed_forward(layer.experts[expert], gathered_.data(), route.size(), p_.expert_ff,
                     produced_.data());
        for (std::size_t i = 0; i < route.size(); ++i)
            std::memcpy(slots_.data() + (route[i].row * used + route[i].slot) * width,
                        produced_.data() + i * width, width * sizeof(float));
    }
    if (p_.shared_experts > 0) {
        feed_forward(layer.shared, normed_.data(), rows,
                     std::size_t{p_.expert_ff} * p_.shared_experts, produced_.data());
    }
    // Slots in order, then the shared expert: the same order whatever the batch.
    for_each_row(rows, width * (used + 1), [&](std::size_t row, std::size_t) {
        const std::span<float> out{branch_.data() + row * width, width};
        std::ranges::fill(out, 0.0F);
        for (std::size_t slot = 0; slot < used; ++slot)
            tensor::multiply_add(out, weights_[row * used + slot],
                                 {slots_.data() + (row * used + slot) * width, width});
        if (p_.shared_experts > 0)
            tensor::add_in_place(out, {produced_.data() + row * width, width});
    });
}

void Forward::emit_logits(const Batch& batch, LogitsSink on_logits) {
    wanted_.clear();
    for (std::size_t row = 0; row < batch.rows.size(); ++row)
        if (batch.rows[row].wants_logits) wanted_.push_back(row);
    for (std::size_t first = 0; first < wanted_.size(); first += kLogitsRows) {
        const std::size_t count = std::min(kLogitsRows, wanted_.size() - first);
        for (std::size_t i = 0; i < count; ++i)
            tensor::rms_norm({x_.data() + wanted_[first + i] * p_.width, p_.width}, *output_norm_,
                             p_.rms_eps, {normed_.data() + i * p_.width, p_.width});
        projection_.set_input(normed_.data(), p_.width, count, p_.width);
        projection_.apply(model_->output(), logits_.data(), p_.vocabulary);
        for (std::size_t i = 0; i < count; ++i)
            on_logits(wanted_[first + i], {logits_.data() + i * p_.vocabulary, p_.vocabulary});
    }
}

}  // namespace sluice::engine
