#pragma once

// Where each matrix of a model lies in the packed form: one stretch of bytes, matrix after matrix, each
// on a cache line. The plan follows from the checkpoint alone, so every process that loads it plans the
// same bytes, and any part of them can be computed without the rest: by several threads, straight into
// memory or into a file.

#include <cstddef>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "tensor/packed_matrix.h"

namespace sluice::engine {

struct PlannedMatrix {
    tensor::MatrixShape shape;
    std::span<const std::byte> source;  ///< In the checkpoint, which outlives the plan.
    std::size_t offset = 0;             ///< In the packed form.
};

class WeightPlan {
public:
    /// Appends a matrix. Errors are those of tensor::check_source.
    [[nodiscard]] Result<void> add(const tensor::MatrixShape& shape,
                                   std::span<const std::byte> source);

    [[nodiscard]] std::span<const PlannedMatrix> matrices() const { return matrices_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

    /// Names the layout: types, shapes, order and packing version, not the weights.
    [[nodiscard]] Xxh128 digest() const;

    /// Computes bytes [begin, begin + out.size()) of the packed form. `out` starts on a cache line.
    /// Any thread.
    void pack(std::size_t begin, std::span<std::byte> out) const;

private:
    std::vector<PlannedMatrix> matrices_;
    std::size_t bytes_ = 0;
};

}  // namespace sluice::engine
