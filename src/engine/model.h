#pragma once

// A model's weights, packed for the kernels and checked against its hyper-parameters. Immutable after
// loading and shared by every sequence; the engine's forward pass only reads it.

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/gguf_file.h"
#include "checkpoint/hyper_parameters.h"
#include "engine/packed_cache.h"
#include "engine/weight_plan.h"
#include "tensor/packed_matrix.h"
#include "tensor/rope.h"

namespace sluice::engine {

/// gate, up and down of one SwiGLU block.
struct FeedForward {
    tensor::PackedMatrix gate;
    tensor::PackedMatrix up;
    tensor::PackedMatrix down;
};

struct Layer {
    std::vector<float> attention_norm;
    std::vector<float> feed_forward_norm;

    // Queries: through a low rank (q_a, q_a_norm, q_b) or directly (q_b alone, from the width).
    tensor::PackedMatrix q_a;
    std::vector<float> q_a_norm;
    tensor::PackedMatrix q_b;
    tensor::PackedMatrix kv_a;
    std::vector<float> kv_a_norm;
    std::vector<tensor::PackedMatrix> k_b;  ///< Per head: nope to latent.
    std::vector<tensor::PackedMatrix> v_b;  ///< Per head: latent to value.
    tensor::PackedMatrix output;

    FeedForward dense;  ///< Dense layers only.

    // MoE layers only.
    tensor::PackedMatrix router;
    std::vector<float> router_bias;
    std::vector<FeedForward> experts;
    FeedForward shared;
};

/// DeepSeek V3's head for multi-token prediction: from the hidden state of position i and the token at
/// i + 1 it predicts the token at i + 2. Embedding and output matrix are the model's own.
struct MtpHead {
    std::vector<float> token_norm;   ///< Of the embedding.
    std::vector<float> hidden_norm;  ///< Of the hidden state.
    tensor::PackedMatrix combine;    ///< Both side by side, token first, to the width.
    Layer layer;
    std::vector<float> output_norm;
};

/// What of a checkpoint is packed and where. Reads no weights; errors are those of Model::load.
[[nodiscard]] Result<WeightPlan> plan_weights(const checkpoint::GgufFile& file);

class Model {
public:
    /// Maps the file, checks every tensor's shape and takes the packed weights from where they are,
    /// or packs them (packed_cache.h). An error names the tensor.
    [[nodiscard]] static Result<std::shared_ptr<const Model>> load(
        const std::filesystem::path& path,
        PackedOptions options = PackedOptions::from_environment());

    /// A model without weights: all that follows from the shapes, such as what computing with it takes.
    /// Reads no tensor; `file` outlives it. Errors are those of `load`.
    [[nodiscard]] static Result<std::shared_ptr<const Model>> outline(
        const checkpoint::GgufFile& file);

    [[nodiscard]] const checkpoint::HyperParameters& parameters() const { return parameters_; }
    [[nodiscard]] const std::string& fingerprint() const { return weights_.fingerprint; }
    [[nodiscard]] std::span<const Layer> layers() const { return layers_; }
    [[nodiscard]] const std::vector<float>& output_norm() const { return output_norm_; }
    [[nodiscard]] const tensor::PackedMatrix& output() const { return output_; }
    /// The first of the file's MTP heads; null if it has none.
    [[nodiscard]] const MtpHead* mtp() const { return mtp_ ? &*mtp_ : nullptr; }
    [[nodiscard]] const tensor::RopeTable& rope() const { return rope_; }

    /// Factor of every attention score: 1/√(key length), with YaRN's correction.
    [[nodiscard]] float attention_scale() const { return attention_scale_; }

    /// Widens the embedding of `token` into `out` (width values). `token` is in the vocabulary.
    void embed(TokenId token, std::span<float> out) const;

    /// Arithmetic version, weight packing and KV dtype: equal ids give equal bits.
    [[nodiscard]] std::string numerics_id() const;

    /// Weights in memory, in bytes: the packed ones, and the embedding as it lies in the file.
    [[nodiscard]] std::size_t weight_bytes() const { return weights_.bytes + embedding_.size(); }
    /// Weights that one token reads when it is decoded alone, in bytes: of the experts only the chosen.
    [[nodiscard]] std::size_t bytes_per_token() const;
    [[nodiscard]] std::size_t embedding_bytes() const { return embedding_.size(); }
    /// Where the packed weights are and how they came there.
    [[nodiscard]] const PackedWeights& weights() const { return weights_; }

private:
    friend class ModelLoader;
    Model() = default;

    std::unique_ptr<checkpoint::GgufFile> file_;  ///< Embeddings are read from the mapping.
    checkpoint::HyperParameters parameters_;
    PackedWeights weights_;  ///< What every matrix below looks at.
    tensor::WeightType embedding_type_ = tensor::WeightType::kF32;
    std::span<const std::byte> embedding_;
    std::vector<Layer> layers_;
    std::vector<float> output_norm_;
    tensor::PackedMatrix output_;
    std::optional<MtpHead> mtp_;
    tensor::RopeTable rope_;
    float attention_scale_ = 1.0F;
};

}  // namespace sluice::engine
