#pragma once

// What the engine asks of one step of the model, and the part of it that goes through the layers
// together.

#include <cstdint>
#include <span>
#include <vector>

#include "base/sampling_params.h"
#include "engine/kv_pool.h"

namespace sluice::engine {

/// One token to compute.
struct BatchRow {
    TokenId token = 0;
    std::uint32_t position = 0;
    std::uint32_t origin = 0;    ///< Position that the first row of the sequence's blocks is for.
    std::uint32_t sequence = 0;  ///< Index into Batch::block_tables.
    bool wants_logits = false;
};

struct Batch {
    /// Rows of one sequence are in ascending position; positions before them are in the cache.
    std::vector<BatchRow> rows;
    /// Blocks of each sequence, covering every position of its rows from their origin on.
    std::vector<std::span<const BlockIndex>> block_tables;
};

/// Rows of a batch that follow each other, and their residual stream.
struct Pass {
    std::span<const BatchRow> rows;
    std::span<const std::span<const BlockIndex>> block_tables;
    KvPool* pool = nullptr;
    float* x = nullptr;  ///< [rows][width]
};

}  // namespace sluice::engine
