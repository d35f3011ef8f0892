#include "engine/weight_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tensor/aligned_buffer.h"

namespace sluice::engine {
namespace {

using tensor::MatrixShape;
using tensor::WeightType;

std::vector<std::byte> random_bytes(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}

/// Matrices of every type, with ragged outputs and with panels that are no multiple of a cache line.
class WeightPlanTest : public testing::Test {
protected:
    WeightPlanTest() {
        for (const MatrixShape& shape :
             {MatrixShape{WeightType::kQ8_0, 40, 64}, MatrixShape{WeightType::kF32, 1, 3},
              MatrixShape{WeightType::kF16, 17, 5}, MatrixShape{WeightType::kBf16, 64, 32},
              MatrixShape{WeightType::kQ8_0, 16, 32}}) {
            sources_.push_back(random_bytes(source_bytes(shape.type, shape.outputs, shape.inputs),
                                            sources_.size() + 1U));
            EXPECT_TRUE(plan_.add(shape, sources_.back()).has_value());
        }
    }

    std::vector<std::vector<std::byte>> sources_;
    WeightPlan plan_;
};

TEST_F(WeightPlanTest, EveryMatrixLiesWherePlannedAsItWouldPackAlone) {
    tensor::AlignedBuffer all(plan_.bytes());
    plan_.pack(0, {all.data(), all.size()});
    for (const PlannedMatrix& matrix : plan_.matrices()) {
        EXPECT_EQ(matrix.offset % tensor::AlignedBuffer::kAlignment, 0U);
        const auto alone = tensor::PackedMatrix::pack(matrix.shape.type, matrix.shape.outputs,
                                                      matrix.shape.inputs, matrix.source);
        ASSERT_TRUE(alone.has_value());
        EXPECT_TRUE(std::equal(alone->panel<std::byte>(0),
                               alone->panel<std::byte>(0) + alone->bytes(),
                               all.data() + matrix.offset));
    }
}

TEST_F(WeightPlanTest, PartsOfAnySizeMakeTheSameWhole) {
    tensor::AlignedBuffer all(plan_.bytes());
    plan_.pack(0, {all.data(), all.size()});
    for (const std::size_t part : {64U, 192U, 1024U, 4096U}) {
        for (std::size_t at = 0; at < plan_.bytes(); at += part) {
            tensor::AlignedBuffer piece(std::min(part, plan_.bytes() - at));
            plan_.pack(at, {piece.data(), piece.size()});
            ASSERT_TRUE(std::equal(piece.data(), piece.data() + piece.size(), all.data() + at))
                << "part of " << part << " at " << at;
        }
    }
}

TEST_F(WeightPlanTest, TheDigestNamesTheLayoutAndNotTheWeights) {
    WeightPlan other_weights;
    WeightPlan other_order;
    const std::vector<std::byte> zeros(1 << 16);
    const auto add = [&](WeightPlan& plan, const MatrixShape& shape) {
        const std::size_t bytes = source_bytes(shape.type, shape.outputs, shape.inputs);
        ASSERT_TRUE(plan.add(shape, std::span(zeros).first(bytes)).has_value());
    };
    for (const PlannedMatrix& matrix : plan_.matrices()) add(other_weights, matrix.shape);
    for (std::size_t i = plan_.matrices().size(); i > 0; --i)
        add(other_order, plan_.matrices()[i - 1].shape);
    EXPECT_EQ(other_weights.digest(), plan_.digest());
    EXPECT_NE(other_order.digest(), plan_.digest());
}

TEST_F(WeightPlanTest, ASourceOfAnotherSizeIsRefused) {
    const auto added = plan_.add({WeightType::kF32, 2, 2}, sources_.front());
    ASSERT_FALSE(added.has_value());
    EXPECT_EQ(added.error().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace sluice::engine
