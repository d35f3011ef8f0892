#pragma once

// Matrix products of one step, split over the thread team. The input is set once and used for several
// matrices; it is quantised only when the first q8_0 matrix asks for it.

#include <cstddef>

#include "base/thread_team.h"
#include "tensor/matmul.h"

namespace sluice::engine {

class Projection {
public:
    /// Buffers for inputs of up to `rows_max` x `inputs_max`.
    Projection(ThreadTeam& team, std::size_t rows_max, std::size_t inputs_max);

    /// Row r of the input starts at x + r * stride. The memory stays unchanged until the next call.
    void set_input(const float* x, std::size_t stride, std::size_t rows, std::size_t inputs);

    /// y[r] = W · input[r] for every row; row r of the output starts at y + r * stride.
    void apply(const tensor::PackedMatrix& weights, float* y, std::size_t stride);

private:
    void quantize();

    ThreadTeam* team_;
    tensor::QuantizedRows quantized_;
    const float* x_ = nullptr;
    std::size_t stride_ = 0;
    std::size_t rows_ = 0;
    std::size_t inputs_ = 0;
    bool is_quantized_ = false;
};

}  // namespace sluice::engine
