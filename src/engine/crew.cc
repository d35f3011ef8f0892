#include "engine/crew.h"

#include <algorithm>

#include "base/assert.h"

namespace sluice::engine {
namespace {

/// Rows whose activations a member's second-level cache holds.
constexpr std::size_t kMemberRows = 128;
/// From here on a member has enough to do with each matrix to read all of it for its own rows.
constexpr std::size_t kManyRows = 32;
/// Weights that stay in the cache that all members share cost little to read once more.
constexpr std::size_t kCachedBytes = 32U << 20;

}  // namespace

Crew::Crew(ThreadTeam& team, const Sizes& sizes)
    : team_(&team),
      pass_rows_(std::min(sizes.rows, kMemberRows * team.size())),
      cached_weights_(sizes.weight_bytes <= kCachedBytes) {
    const std::size_t lanes = team.size() == 1 ? 1 : team.size() + 1;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        lanes_.push_back(
            {.projection = Projection(lane < team.size() ? alone_ : team, pass_rows_, sizes.inputs),
             .gate = tensor::FloatBuffer(pass_rows_ * sizes.feed_forward),
             .up = tensor::FloatBuffer(pass_rows_ * sizes.feed_forward),
             .gathered = tensor::FloatBuffer(pass_rows_ * sizes.width),
             .produced = tensor::FloatBuffer(pass_rows_ * sizes.width),
             .scores = tensor::FloatBuffer(sizes.attention_scratch),
             .expert_order = std::vector<std::uint32_t>(sizes.experts),
             .expert_keys = std::vector<float>(sizes.experts)});
    }
}

void Crew::begin(std::size_t rows) {
    SLUICE_ASSERT(rows > 0 && rows <= pass_rows_);
    rows_ = rows;
    by_rows_ = rows >= team_->size() * (cached_weights_ ? 2 : kManyRows);
}

}  // namespace sluice::engine
