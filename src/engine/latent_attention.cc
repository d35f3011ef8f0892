#include "engine/latent_attention.h"

#include <algorithm>
#include <cstring>

#include "tensor/vector_ops.h"

namespace sluice::engine {
namespace {

tensor::MlaShape shape_of(const checkpoint::HyperParameters& p) {
    return {.heads = p.heads, .latent = p.kv_rank, .rope = p.rope};
}

}  // namespace

std::size_t LatentAttention::scratch(const checkpoint::HyperParameters& p) {
    return shape_of(p).scratch();
}

LatentAttention::LatentAttention(const Model& model, Crew& crew)
    : p_(model.parameters()), rope_(model.rope()), crew_(crew), mla_(shape_of(p_)) {
    mla_.scale = model.attention_scale();
    const std::size_t rows = crew.pass_rows();
    normed_ = tensor::FloatBuffer(rows * p_.width);
    q_low_ = tensor::FloatBuffer(rows * std::max(p_.q_rank, 1U));
    q_ = tensor::FloatBuffer(rows * p_.heads * p_.key_length());
    kv_ = tensor::FloatBuffer(rows * mla_.width());
    query_ = tensor::FloatBuffer(rows * p_.heads * mla_.width());
    latent_ = tensor::FloatBuffer(rows * p_.heads * p_.kv_rank);
    value_ = tensor::FloatBuffer(rows * p_.heads * p_.value);
    output_ = tensor::FloatBuffer(rows * p_.width);
    cos_ = tensor::FloatBuffer(rows * p_.rope / 2);
    sin_ = tensor::FloatBuffer(rows * p_.rope / 2);
}

void LatentAttention::rotate_rows(const Pass& pass, RowRange range) {
    const std::size_t half = p_.rope / 2;
    for (std::size_t row = range.begin; row < range.end; ++row)
        rope_.angles(pass.rows[row].position, {cos_.data() + row * half, half},
                     {sin_.data() + row * half, half});
}

void LatentAttention::rotate(float* x, std::size_t row) const {
    const std::size_t half = p_.rope / 2;
    tensor::rotate({x, p_.rope}, {cos_.data() + row * half, half},
                   {sin_.data() + row * half, half});
}

void LatentAttention::project(const Pass& pass, const Layer& layer, std::size_t index, Lane& lane,
                              RowRange range) {
    const std::size_t width = p_.width;
    for (std::size_t row = range.begin; row < range.end; ++row)
        tensor::rms_norm({pass.x + row * width, width}, layer.attention_norm, p_.rms_eps,
                         {normed_.data() + row * width, width});
    lane.projection.set_input(normed_.data() + range.begin * width, width, range.count(), width);
    float* kv = kv_.data() + range.begin * mla_.width();
    float* low = q_low_.data() + range.begin * p_.q_rank;
    if (p_.q_rank > 0) {
        lane.projection.apply({{&layer.kv_a, kv, mla_.width()}, {&layer.q_a, low, p_.q_rank}});
    } else {
        lane.projection.apply(layer.kv_a, kv, mla_.width());
    }
    project_queries(layer, lane, range);
    store_keys(pass, layer, index, range);
}

// Fills query_ with each head's absorbed query: k_bᵀ·q_nope, then the rotated part. The low-rank query is
// in q_low_; without one, the input of the lane's projection is the normed residual.
void LatentAttention::project_queries(const Layer& layer, Lane& lane, RowRange range) {
    const std::size_t rows = range.count();
    const std::size_t key = p_.key_length();
    const std::size_t queries = p_.heads * key;
    const std::size_t width = mla_.width();
    if (p_.q_rank > 0) {
        float* low = q_low_.data() + range.begin * p_.q_rank;
        for (std::size_t row = 0; row < rows; ++row) {
            const std::span<float> at{low + row * p_.q_rank, p_.q_rank};
            tensor::rms_norm(at, layer.q_a_norm, p_.rms_eps, at);
        }
        lane.projection.set_input(low, p_.q_rank, rows, p_.q_rank);
    }
    float* q = q_.data() + range.begin * queries;
    float* query = query_.data() + range.begin * p_.heads * width;
    lane.projection.apply(layer.q_b, q, queries);
    const std::size_t cost = rows * p_.heads * p_.nope * p_.kv_rank;
    crew_.for_items(lane, p_.heads, cost, [&](std::size_t head, Lane& member) {
        member.projection.set_input(q + head * key, queries, rows, p_.nope);
        member.projection.apply(layer.k_b[head], query + head * width, p_.heads * width);
    });
    for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t head = 0; head < p_.heads; ++head) {
            float* to = query + (row * p_.heads + head) * width + p_.kv_rank;
            std::memcpy(to, q + row * queries + head * key + p_.nope, p_.rope * sizeof(float));
            rotate(to, range.begin + row);
        }
    }
}

// Writes each row's normed latent and rotated key into its page.
void LatentAttention::store_keys(const Pass& pass, const Layer& layer, std::size_t index,
                                 RowRange range) {
    const std::size_t width = mla_.width();
    const std::size_t block_tokens = pass.pool->shape().block_tokens;
    for (std::size_t row = range.begin; row < range.end; ++row) {
        const BatchRow& at = pass.rows[row];
        const std::size_t slot = at.position - at.origin;
        const BlockIndex block = pass.block_tables[at.sequence][slot / block_tokens];
        float* to = pass.pool->page(index, block) + slot % block_tokens * width;
        const float* from = kv_.data() + row * width;
        tensor::rms_norm({from, p_.kv_rank}, layer.kv_a_norm, p_.rms_eps, {to, p_.kv_rank});
        std::memcpy(to + p_.kv_rank, from + p_.kv_rank, p_.rope * sizeof(float));
        rotate(to + p_.kv_rank, row);
    }
}

void LatentAttention::attend(const Pass& pass, std::size_t index) {
    const std::size_t longest =
        std::ranges::max(pass.rows, {}, &BatchRow::position).position + std::size_t{1};
    const std::size_t cost = longest * p_.heads * mla_.width();
    const std::size_t heads = p_.heads;
    if (pass.rows.size() > 1) {
        crew_.for_rows(cost, [&](std::size_t row, Lane& lane) {
            attend_heads(pass, index, row, 0, heads, lane);
        });
        return;
    }
    const std::size_t parts = std::min(crew_.members(), heads);
    crew_.for_items(crew_.whole(), parts, 2 * cost, [&](std::size_t part, Lane& lane) {
        const std::size_t first = heads * part / parts;
        attend_heads(pass, index, 0, first, heads * (part + 1) / parts - first, lane);
    });
}

// Of heads [head, head + heads); which are computed together changes no bit.
void LatentAttention::attend_heads(const Pass& pass, std::size_t index, std::size_t row,
                                   std::size_t head, std::size_t heads, Lane& lane) {
    const BatchRow& at = pass.rows[row];
    tensor::MlaShape shape = mla_;
    shape.heads = heads;
    shape.page_positions = pass.pool->shape().block_tokens;
    const tensor::PagedRows pages{.base = pass.pool->layer_base(index),
                                  .stride = pass.pool->block_stride(),
                                  .index = pass.block_tables[at.sequence]};
    const std::size_t first = row * p_.heads + head;
    tensor::mla_attention(shape, query_.data() + first * shape.width(), pages,
                          at.position - at.origin + std::size_t{1},
                          latent_.data() + first * p_.kv_rank,
                          {lane.scores.data(), lane.scores.size()});
}

void LatentAttention::add_output(const Pass& pass, const Layer& layer, Lane& lane, RowRange range) {
    const std::size_t rows = range.count();
    const std::size_t latents = std::size_t{p_.heads} * p_.kv_rank;
    const std::size_t values = std::size_t{p_.heads} * p_.value;
    const float* latent = latent_.data() + range.begin * latents;
    float* value = value_.data() + range.begin * values;
    const std::size_t cost = rows * p_.heads * p_.kv_rank * p_.value;
    crew_.for_items(lane, p_.heads, cost, [&](std::size_t head, Lane& member) {
        member.projection.set_input(latent + head * p_.kv_rank, latents, rows, p_.kv_rank);
        member.projection.apply(layer.v_b[head], value + head * p_.value, values);
    });
    const std::size_t first = range.begin * p_.width;
    lane.projection.set_input(value, values, rows, values);
    lane.projection.apply(layer.output, output_.data() + first, p_.width);
    tensor::add_in_place({pass.x + first, rows * p_.width},
                         {output_.data() + first, rows * p_.width});
}

}  // namespace sluice::engine
