#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "checkpoint/gguf_types.h"
#include "engine/model.h"
#include "engine/packed_cache.h"
#include "engine/weight_plan.h"
#include "tensor/transcendental.h"

namespace sluice::engine {
namespace {

using checkpoint::DataType;
using checkpoint::HyperParameters;
using checkpoint::TensorView;
using tensor::PackedMatrix;
using tensor::WeightType;

Result<WeightType> weight_type(const TensorView& view) {
    switch (view.type) {
        case DataType::kF32: return WeightType::kF32;
        case DataType::kF16: return WeightType::kF16;
        case DataType::kBf16: return WeightType::kBf16;
        case DataType::kQ8_0: return WeightType::kQ8_0;
        default: break;
    }
    return std::unexpected(Error::unsupported(
        fmt::format("type {} is not supported; the native engine reads f32, f16, bf16 and q8_0",
                    checkpoint::tensor_type_name(view.raw_type)),
        std::string(view.name)));
}

std::string shape_text(std::span<const std::uint64_t> shape) {
    return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace

// Reads tensors one by one; the first failure stops it and is kept. Goes through the model twice: the
// first time it only plans where each packed matrix will be.
class ModelLoader {
public:
    explicit ModelLoader(const checkpoint::GgufFile& file) : file_(&file) {}

    Result<WeightPlan> plan() {
        auto parameters = checkpoint::read_hyper_parameters(*file_);
        if (!parameters) return std::unexpected(parameters.error());
        p_ = *parameters;
        if (auto fits = check_limits(); !fits) return std::unexpected(fits.error());
        load_tensors();
        if (error_) return std::unexpected(*error_);
        return plan_;
    }

    Result<std::shared_ptr<const Model>> outline() {
        if (auto planned = plan(); !planned) return std::unexpected(planned.error());
        set_rope();
        model_->weights_.bytes = plan_.bytes();
        return model_;
    }

    Result<std::shared_ptr<Model>> load(const std::filesystem::path& path, PackedOptions options) {
        if (auto planned = plan(); !planned) return std::unexpected(planned.error());
        ThreadTeam team(std::clamp(std::thread::hardware_concurrency(), 1U, kLoadThreads));
        auto weights = PackedCache(*file_, path, plan_, team, std::move(options)).obtain();
        if (!weights) return std::unexpected(weights.error());
        packed_ = weights->data();
        load_tensors();
        set_rope();
        file_->release_pages();
        model_->weights_ = std::move(*weights);
        return model_;
    }

private:
    static constexpr unsigned kLoadThreads = 16;

    void load_tensors() {
        model_.reset(new Model());
        model_->parameters_ = p_;
        next_ = 0;
        load_ends();
        for (std::uint32_t i = 0; i < p_.layers; ++i) model_->layers_.push_back(load_layer(i));
        load_mtp();
    }

    // What the kernels need beyond a well-formed checkpoint.
    Result<void> check_limits() const {
        constexpr std::uint32_t kMultiple = 16;
        if (p_.kv_rank % kMultiple != 0 || p_.rope % kMultiple != 0) {
            return std::unexpected(Error::unsupported(
                fmt::format("kv rank {} and rope dimensions {} must be multiples of {}", p_.kv_rank,
                            p_.rope, kMultiple),
                "deepseek2.attention"));
        }
        if (p_.expert_groups != 1) {
            return std::unexpected(Error::unsupported(
                fmt::format("group-limited routing ({} groups) is not supported yet",
                            p_.expert_groups),
                "deepseek2.expert_group_count"));
        }
        return {};
    }

    void fail(Error error) {
        if (!error_) error_ = std::move(error);
    }

    const TensorView* find(const std::string& name, std::span<const std::uint64_t> shape) {
        const TensorView* view = file_->find_tensor(name);
        if (view == nullptr) {
            fail(Error::not_found("the tensor is missing", name));
            return nullptr;
        }
        if (!std::ranges::equal(view->shape, shape)) {
            fail(Error::corrupt(fmt::format("shape is {}, but the hyper-parameters say {}",
                                            shape_text(view->shape), shape_text(shape)),
                                name));
            return nullptr;
        }
        return view;
    }

    std::vector<float> vector(const std::string& name, std::uint64_t size) {
        const std::array<std::uint64_t, 1> shape = {size};
        const TensorView* view = find(name, shape);
        if (view == nullptr) return {};
        if (view->type != DataType::kF32) {
            fail(Error::unsupported("norms and biases must be f32", name));
            return {};
        }
        std::vector<float> values(size);
        std::memcpy(values.data(), view->data.data(), view->data.size());
        return values;
    }

    PackedMatrix pack(const TensorView& view, std::uint64_t outputs, std::uint64_t inputs,
                      std::uint64_t slice) {
        const auto type = weight_type(view);
        if (!type) {
            fail(type.error());
            return {};
        }
        const tensor::MatrixShape shape{.type = *type, .outputs = outputs, .inputs = inputs};
        if (packed_ != nullptr) return {shape, packed_ + plan_.matrices()[next_++].offset};
        const std::size_t bytes = tensor::source_bytes(*type, outputs, inputs);
        if (auto added = plan_.add(shape, view.data.subspan(slice * bytes, bytes)); !added)
            fail(added.error().within(view.name));
        return {shape, nullptr};
    }

    PackedMatrix matrix(const std::string& name, std::uint64_t outputs, std::uint64_t inputs) {
        const std::array<std::uint64_t, 2> shape = {inputs, outputs};
        const TensorView* view = find(name, shape);
        return view == nullptr ? PackedMatrix() : pack(*view, outputs, inputs, 0);
    }

    // A stack of equal matrices: one per head or expert.
    std::vector<PackedMatrix> matrices(const std::string& name, std::uint64_t count,
                                       std::uint64_t outputs, std::uint64_t inputs) {
        const std::array<std::uint64_t, 3> shape = {inputs, outputs, count};
        std::vector<PackedMatrix> stack;
        if (const TensorView* view = find(name, shape); view != nullptr) {
            for (std::uint64_t i = 0; i < count; ++i)
                stack.push_back(pack(*view, outputs, inputs, i));
        }
        return stack;
    }

    void load_ends() {
        const std::array<std::uint64_t, 2> shape = {p_.width, p_.vocabulary};
        if (const TensorView* view = find("token_embd.weight", shape); view != nullptr) {
            const auto type = weight_type(*view);
            if (!type) return fail(type.error());
            model_->embedding_type_ = *type;
            model_->embedding_ = view->data;
        }
        model_->output_norm_ = vector("output_norm.weight", p_.width);
        model_->output_ = matrix("output.weight", p_.vocabulary, p_.width);
    }

    Layer load_layer(std::uint32_t index) {
        const std::string prefix = fmt::format("blk.{}.", index);
        Layer layer;
        layer.attention_norm = vector(prefix + "attn_norm.weight", p_.width);
        layer.feed_forward_norm = vector(prefix + "ffn_norm.weight", p_.width);
        load_attention(prefix, layer);
        if (p_.is_moe_layer(index)) {
            load_experts(prefix, layer);
        } else {
            layer.dense = feed_forward(prefix, "", p_.dense_ff);
        }
        return layer;
    }

    // Conversions may leave the heads out and still count them; a head that is there is there in full.
    void load_mtp() {
        const std::string prefix = fmt::format("blk.{}.nextn.", p_.layers);
        if (p_.mtp_layers == 0 || file_->find_tensor(prefix + "eh_proj.weight") == nullptr) return;
        model_->mtp_ = MtpHead{
            .token_norm = vector(prefix + "enorm.weight", p_.width),
            .hidden_norm = vector(prefix + "hnorm.weight", p_.width),
            .combine = matrix(prefix + "eh_proj.weight", p_.width, std::uint64_t{2} * p_.width),
            .layer = load_layer(p_.layers),
            .output_norm = vector(prefix + "shared_head_norm.weight", p_.width)};
    }

    void load_attention(const std::string& prefix, Layer& layer) {
        const std::uint64_t query = std::uint64_t{p_.heads} * (p_.nope + p_.rope);
        if (p_.q_rank > 0) {
            layer.q_a = matrix(prefix + "attn_q_a.weight", p_.q_rank, p_.width);
            layer.q_a_norm = vector(prefix + "attn_q_a_norm.weight", p_.q_rank);
            layer.q_b = matrix(prefix + "attn_q_b.weight", query, p_.q_rank);
        } else {
            layer.q_b = matrix(prefix + "attn_q.weight", query, p_.width);
        }
        layer.kv_a = matrix(prefix + "attn_kv_a_mqa.weight", p_.kv_rank + p_.rope, p_.width);
        layer.kv_a_norm = vector(prefix + "attn_kv_a_norm.weight", p_.kv_rank);
        layer.k_b = matrices(prefix + "attn_k_b.weight", p_.heads, p_.kv_rank, p_.nope);
        layer.v_b = matrices(prefix + "attn_v_b.weight", p_.heads, p_.value, p_.kv_rank);
        layer.output =
            matrix(prefix + "attn_output.weight", p_.width, std::uint64_t{p_.heads} * p_.value);
    }

    FeedForward feed_forward(const std::string& prefix, std::string_view suffix,
                             std::uint64_t size) {
        const auto name = [&](std::string_view part) {
            return fmt::format("{}ffn_{}{}.weight", prefix, part, suffix);
        };
        return {.gate = matrix(name("gate"), size, p_.width),
                .up = matrix(name("up"), size, p_.width),
                .down = matrix(name("down"), p_.width, size)};
    }

    void load_experts(const std::string& prefix, Layer& layer) {
        layer.router = matrix(prefix + "ffn_gate_inp.weight", p_.expert_count, p_.width);
        if (file_->find_tensor(prefix + "exp_probs_b.bias") != nullptr) {
            layer.router_bias = vector(prefix + "exp_probs_b.bias", p_.expert_count);
        } else {
            layer.router_bias.assign(p_.expert_count, 0.0F);
        }
        auto gate =
            matrices(prefix + "ffn_gate_exps.weight", p_.expert_count, p_.expert_ff, p_.width);
        auto up = matrices(prefix + "ffn_up_exps.weight", p_.expert_count, p_.expert_ff, p_.width);
        auto down =
            matrices(prefix + "ffn_down_exps.weight", p_.expert_count, p_.width, p_.expert_ff);
        if (error_) return;
        for (std::uint32_t i = 0; i < p_.expert_count; ++i) {
            layer.experts.push_back(
                {.gate = std::move(gate[i]), .up = std::move(up[i]), .down = std::move(down[i])});
        }
        if (p_.shared_experts > 0) {
            layer.shared =
                feed_forward(prefix, "_shexp", std::uint64_t{p_.expert_ff} * p_.shared_experts);
        }
    }

    void set_rope() {
        const bool yarn = p_.rope_scaling == checkpoint::RopeScaling::kYarn;
        tensor::YarnParams scaling;
        double correction = 1.0;
        if (yarn) {
            scaling.factor = p_.rope_factor;
            scaling.original_context = static_cast<double>(p_.rope_original_context);
            correction = 1.0 + p_.yarn_log_multiplier * tensor::natural_log(p_.rope_factor);
        }
        model_->rope_ = tensor::RopeTable(p_.rope, p_.rope_theta, scaling);
        model_->attention_scale_ = static_cast<float>(
            correction * correction / std::sqrt(static_cast<double>(p_.key_length())));
    }

    const checkpoint::GgufFile* file_;
    HyperParameters p_;
    WeightPlan plan_;
    const std::byte* packed_ = nullptr;  ///< Set once everything is planned and packed.
    std::size_t next_ = 0;               ///< Matrix of the plan.
    std::shared_ptr<Model> model_;
    std::optional<Error> error_;
};

Result<WeightPlan> plan_weights(const checkpoint::GgufFile& file) {
    return ModelLoader(file).plan();
}

Result<std::shared_ptr<const Model>> Model::outline(const checkpoint::GgufFile& file) {
    return ModelLoader(file).outline();
}

Result<std::shared_ptr<const Model>> Model::load(const std::filesystem::path& path,
                                                 PackedOptions options) {
    auto opened = checkpoint::GgufFile::open(path);
    if (!opened) return std::unexpected(opened.error());
    auto file = std::make_unique<checkpoint::GgufFile>(std::move(*opened));
    auto model = ModelLoader(*file).load(path, std::move(options));
    if (!model) return std::unexpected(model.error());
    (*model)->file_ = std::move(file);
    return model;
}

}  // namespace sluice::engine
