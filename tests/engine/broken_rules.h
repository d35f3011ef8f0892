#pragma once

// Inverse controls: each breaks one rule of docs/exactness.md inside the engine, so that a test can
// show that the exactness tests would notice. The functions that keep the rules are wrapped when the
// test program is linked (src/CMakeLists.txt names them); Sluice itself has no such switch.

#include <cstdint>
#include <functional>

namespace sluice::engine::test {

enum class Rule : std::uint8_t {
    kNone,
    kSumsFollowBatch,      ///< A horizontal sum has another order in a large batch.
    kSplitsFollowChunk,    ///< Attention is split where the chunk begins.
    kOwnChunkUnrounded,    ///< Queries read their own chunk's keys before they are rounded.
    kNoiseFollowsRow,      ///< The draw's noise depends on the place in the batch.
    kSlotsFollowBatch,     ///< In a large batch, the experts' outputs are added last slot first.
    kDraftsAreNotChecked,  ///< A guess is taken for the pick.
};

/// Called once in the next pass of the model, before it computes: what a test wants to happen meanwhile.
void in_next_pass(std::function<void()> work);

/// Breaks a rule while it lives; one at a time.
class BrokenRule {
public:
    explicit BrokenRule(Rule rule);
    ~BrokenRule();
    BrokenRule(const BrokenRule&) = delete;
    BrokenRule& operator=(const BrokenRule&) = delete;
};

}  // namespace sluice::engine::test
