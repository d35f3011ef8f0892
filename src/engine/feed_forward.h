#pragma once

#include "engine/crew.h"
#include "engine/model.h"

namespace sluice::engine {

/// y = down · (silu(gate · x) ∘ (up · x)) for each row; x and y are [rows][width], contiguous.
void feed_forward(const FeedForward& block, Lane& lane, const float* x, std::size_t rows, float* y);

}  // namespace sluice::engine
