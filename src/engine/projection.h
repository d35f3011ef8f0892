#pragma once

// Matrix products of one step, split over the thread team. The input is set once and used for several
// matrices; it is quantised only when the first q8_0 matrix asks for it.

#include <cstddef>
#include <initializer_list>

#include "base/thread_team.h"
#include "tensor/matmul.h"

namespace sluice::engine {

/// Below this many multiply-adds, a piece of work on many rows is done before the team has gathered.
inline constexpr std::size_t kTeamWork = 64 * 1024;
/// Pieces on one row follow each other so closely that gathering costs them more.
inline constexpr std::size_t kTeamWorkOneRow = 512 * 1024;

/// A matrix and where its product goes: row r to y + r * stride.
struct Product {
    const tensor::PackedMatrix* weights;
    float* y;
    std::size_t stride;
};

class Projection {
public:
    /// Buffers for inputs of up to `rows_max` x `inputs_max`.
    Projection(ThreadTeam& team, std::size_t rows_max, std::size_t inputs_max);

    /// Row r of the input starts at x + r * stride. The memory stays unchanged until the next call.
    void set_input(const float* x, std::size_t stride, std::size_t rows, std::size_t inputs);

    /// y[r] = W · input[r] for every row.
    void apply(const tensor::PackedMatrix& weights, float* y, std::size_t stride) {
        apply({{&weights, y, stride}});
    }
    /// The same for several matrices, with one gathering of the team.
    void apply(std::initializer_list<Product> products);

private:
    void quantize();
    /// The part of each product that is one of `members` members'.
    void apply_part(std::initializer_list<Product> products, std::size_t member,
                    std::size_t members) const;

    ThreadTeam* team_;
    tensor::QuantizedRows quantized_;
    const float* x_ = nullptr;
    std::size_t stride_ = 0;
    std::size_t rows_ = 0;
    std::size_t inputs_ = 0;
    bool is_quantized_ = false;
};

}  // namespace sluice::engine
