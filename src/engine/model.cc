#include "engine/model.h"

#include <fmt/format.h>

#include "tensor/math_constants.h"

namespace sluice::engine {
namespace {

std::size_t bytes_of(const FeedForward& block) {
    return block.gate.bytes() + block.up.bytes() + block.down.bytes();
}

/// What a token reads of a layer that uses `experts_used` of its experts, which are of one size.
std::size_t bytes_read(const Layer& layer, std::size_t experts_used) {
    std::size_t bytes = layer.q_a.bytes() + layer.q_b.bytes() + layer.kv_a.bytes() +
                        layer.output.bytes() + layer.router.bytes();
    for (const auto& head : layer.k_b) bytes += head.bytes();
    for (const auto& head : layer.v_b) bytes += head.bytes();
    bytes += bytes_of(layer.dense) + bytes_of(layer.shared);
    if (!layer.experts.empty()) bytes += experts_used * bytes_of(layer.experts.front());
    return bytes;
}

}  // namespace

void Model::embed(TokenId token, std::span<float> out) const {
    tensor::widen_row(embedding_type_, embedding_, parameters_.width,
                      static_cast<std::size_t>(token), out);
}

std::string Model::numerics_id() const {
    // The packing decides which arithmetic a matrix gets; the largest one stands for all.
    return fmt::format("sluice-{}/{}/kv-f32", tensor::kArithmeticVersion,
                       tensor::to_string(output_.type()));
}

std::size_t Model::bytes_per_token() const {
    std::size_t bytes =
        output_.bytes() + tensor::source_bytes(embedding_type_, 1, parameters_.width);
    for (const Layer& layer : layers_) bytes += bytes_read(layer, parameters_.experts_used);
    return bytes;
}

}  // namespace sluice::engine
