#include "engine/projection.h"

#include "base/assert.h"

namespace sluice::engine {

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

void Projection::apply(std::initializer_list<Product> products) {
    std::size_t outputs = 0;
    for (const Product& product : products) {
        SLUICE_ASSERT(product.weights->inputs() == inputs_);
        outputs += product.weights->outputs();
        if (product.weights->type() == tensor::WeightType::kQ8_0) quantize();
    }
    const std::size_t least = rows_ == 1 ? kTeamWorkOneRow : kTeamWork;
    if (rows_ * inputs_ * outputs < least) return apply_part(products, 0, 1);
    team_->run([&](std::size_t member) { apply_part(products, member, team_->size()); });
}

void Projection::apply_part(std::initializer_list<Product> products, std::size_t member,
                            std::size_t members) const {
    for (const auto& [weights, y, stride] : products) {
        const std::size_t panels = weights->panels();
        const tensor::PanelRange range{panels * member / members, panels * (member + 1) / members};
        if (weights->type() == tensor::WeightType::kQ8_0) {
            tensor::matmul(*weights, quantized_, 0, rows_, y, stride, range);
        } else {
            tensor::matmul(*weights, x_, stride_, rows_, y, stride, range);
        }
    }
}

}  // namespace sluice::engine
