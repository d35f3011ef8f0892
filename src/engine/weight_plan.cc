#include "engine/weight_plan.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "tensor/aligned_buffer.h"

namespace sluice::engine {
namespace {

using tensor::AlignedBuffer;

std::size_t on_cache_line(std::size_t bytes) {
    constexpr std::size_t kLine = AlignedBuffer::kAlignment;
    return (bytes + kLine - 1) / kLine * kLine;
}

/// What of `matrix` falls into [begin, begin + out.size()).
void pack_matrix(const PlannedMatrix& matrix, std::size_t begin, std::span<std::byte> out) {
    const std::size_t panel_bytes = matrix.shape.panel_bytes();
    const std::size_t end = begin + out.size();
    AlignedBuffer whole;  // A panel of which only a part is wanted.
    std::size_t panel = begin > matrix.offset ? (begin - matrix.offset) / panel_bytes : 0;
    for (; panel < matrix.shape.panels(); ++panel) {
        const std::size_t first = matrix.offset + panel * panel_bytes;
        const std::size_t last = first + panel_bytes;
        if (first >= end) break;
        if (first >= begin && last <= end) {
            tensor::pack_panels(matrix.shape, matrix.source, panel, 1,
                                out.subspan(first - begin, panel_bytes));
            continue;
        }
        if (whole.size() == 0) whole = AlignedBuffer(panel_bytes);
        tensor::pack_panels(matrix.shape, matrix.source, panel, 1, {whole.data(), panel_bytes});
        const std::size_t from = std::max(first, begin);
        const std::size_t to = std::min(last, end);
        std::memcpy(out.data() + (from - begin), whole.data() + (from - first), to - from);
    }
}

}  // namespace

Result<void> WeightPlan::add(const tensor::MatrixShape& shape, std::span<const std::byte> source) {
    if (auto fits = tensor::check_source(shape, source); !fits) return fits;
    matrices_.push_back({.shape = shape, .source = source, .offset = bytes_});
    bytes_ += on_cache_line(shape.packed_bytes());
    return {};
}

Xxh128 WeightPlan::digest() const {
    std::vector<std::uint64_t> words{tensor::kPackingVersion, bytes_};
    for (const PlannedMatrix& matrix : matrices_) {
        words.push_back(static_cast<std::uint64_t>(matrix.shape.type));
        words.push_back(matrix.shape.outputs);
        words.push_back(matrix.shape.inputs);
    }
    return xxh3_128(std::as_bytes(std::span(words)));
}

void WeightPlan::pack(std::size_t begin, std::span<std::byte> out) const {
    const std::size_t end = begin + out.size();
    SLUICE_ASSERT(end <= bytes_);
    std::memset(out.data(), 0, out.size());  // Between two matrices lies nothing.
    auto matrix = std::ranges::upper_bound(matrices_, begin, {}, &PlannedMatrix::offset);
    if (matrix != matrices_.begin()) --matrix;
    for (; matrix != matrices_.end() && matrix->offset < end; ++matrix)
        pack_matrix(*matrix, begin, out);
}

}  // namespace sluice::engine
