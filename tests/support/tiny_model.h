#pragma once

// Models of any shape with random weights, in the tensor layout of Krill's files: for tests that ask
// whether the engine is right at odd sizes, not whether the text makes sense.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "checkpoint/hyper_parameters.h"
#include "tests/support/gguf_builder.h"

namespace sluice::test {

/// 1 dense and 1 MoE layer, width 32, 2 heads, 4 experts, 64 tokens; every size a multiple of 32
/// where q8_0 needs it.
[[nodiscard]] checkpoint::HyperParameters tiny_hyper_parameters();

/// All metadata of `model` as a converter writes it, without tensors. Tokens are named "t0", "t1", ...
[[nodiscard]] GgufBuilder with_metadata(const checkpoint::HyperParameters& model);

/// A whole file. Matrices have type `type` (kF32, kF16 or kQ8_0), norms, router and its bias are f32.
/// Equal arguments give equal bytes on every machine.
[[nodiscard]] std::vector<std::byte> random_model(const checkpoint::HyperParameters& model,
                                                  checkpoint::DataType type, std::uint64_t seed);

}  // namespace sluice::test
