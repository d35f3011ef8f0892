#pragma once

#include <limits>

namespace sluice::tensor {

/// A softmax over the positions seen so far: their largest score, and Σ e^(score − largest).
struct SoftmaxState {
    float largest = -std::numeric_limits<float>::infinity();
    float sum = 0.0F;
};

}  // namespace sluice::tensor
