#include "engine/projection.h"

#include "base/assert.h"

namespace sluice::engine {
namespace {

// Below this many multiply-adds a piece of work is done before the team has gathered. Products of one
// row follow each other so closely that gathering costs them more.
constexpr std::size_t kTeamWork = 64 * 1024;
constexpr std::size_t kTeamWorkOneRow = 512 * 1024;

}  // namespace

Projection::Projection(ThreadTeam& team, std::size_t rows_max, std::size_t inputs_max)
    : team_(&team), quantized_(rows_max, inputs_max) {}

void Projection::set_input(const float* x, std::size_t stride, std::size_t rows,
                           std::size_t inputs) {
    x_ = x;
    stride_ = stride;
    rows_ = rows;
    inputs_ = inputs;
    is_quantized_ = false;
}

void Projection::quantize() {
    if (is_quantized_) return;
    is_quantized_ = true;
    const auto part = [&](std::size_t member, std::size_t members) {
        for (std::size_t row = member; row < rows_; row += members)
            quantized_.quantize_row(row, x_ + row * stride_, inputs_);
    };
    if (rows_ * inputs_ < kTeamWork / 8) return part(0, 1);
    team_->run([&](std::size_t member) { part(member, team_->size()); });
}

void Projection::apply(const tensor::PackedMatrix& weights, float* y, std::size_t stride) {
    SLUICE_ASSERT(weights.inputs() == inputs_);
    const bool q8 = weights.type() == tensor::WeightType::kQ8_0;
    if (q8) quantize();
    const auto part = [&](tensor::PanelRange range) {
        if (q8) {
            tensor::matmul(weights, quantized_, 0, rows_, y, stride, range);
        } else {
            tensor::matmul(weights, x_, stride_, rows_, y, stride, range);
        }
    };
    const std::size_t panels = weights.panels();
    const std::size_t least = rows_ == 1 ? kTeamWorkOneRow : kTeamWork;
    if (rows_ * inputs_ * weights.outputs() < least) return part({0, panels});
    team_->run([&](std::size_t member) {
        part({panels * member / team_->size(), panels * (member + 1) / team_->size()});
    });
}

}  // namespace sluice::engine
