#include "engine/feed_forward.h"

#include "tensor/vector_ops.h"

namespace sluice::engine {

void feed_forward(const FeedForward& block, Lane& lane, const float* x, std::size_t rows,
                  float* y) {
    const std::size_t width = block.gate.inputs();
    const std::size_t size = block.gate.outputs();
    lane.projection.set_input(x, width, rows, width);
    lane.projection.apply(
        {{&block.gate, lane.gate.data(), size}, {&block.up, lane.up.data(), size}});
    tensor::silu_multiply({lane.gate.data(), rows * size}, {lane.up.data(), rows * size},
                          {lane.gate.data(), rows * size});
    lane.projection.set_input(lane.gate.data(), size, rows, size);
    lane.projection.apply(block.down, y, width);
}

}  // namespace sluice::engine
