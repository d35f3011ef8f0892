#pragma once

// Guesses the next tokens with the model's own MTP head: from the hidden state of a sequence's last
// computed position and the token after it, the head predicts the token after that one; given its own
// hidden state and its own guess, it goes on.
//
// The head attends to keys and values of its own. They depend on the token that follows each
// position, so they belong to one sequence and are never kept under a block's key. A sequence whose
// past was taken from the pool, was dropped by a preemption, or lies further back than kReach has none
// of it: its head simply starts later, and guesses a little worse. Guesses change no token.

#include <memory>
#include <span>
#include <vector>

#include "engine/forward.h"
#include "engine/sampler.h"

namespace sluice::engine {

struct Sequence;

/// What the head has of one sequence. Positions follow each other without a gap: those from `origin`
/// on are in the head's cache, those from `seen` on still wait as hidden states. Gives its blocks back
/// when it goes.
class MtpMemory {
public:
    MtpMemory() = default;
    ~MtpMemory() { clear(); }
    MtpMemory(MtpMemory&& other) noexcept { *this = std::move(other); }
    MtpMemory& operator=(MtpMemory&& other) noexcept;

    /// Forgets everything.
    void clear();

private:
    friend class MtpDrafter;

    /// Position after the last that is known.
    [[nodiscard]] std::size_t end(std::size_t width) const {
        return seen_ + hidden_.size() / width;
    }
    /// Starts at `position`, which is not in the cache, with what waits from there on.
    void forget_before(std::size_t position, std::size_t width);

    std::shared_ptr<KvPool> pool_;  ///< Null while there are no blocks.
    std::vector<BlockIndex> blocks_;
    std::size_t origin_ = 0;
    std::size_t seen_ = 0;
    std::vector<float> hidden_;  ///< [positions][width]
};

class MtpDrafter {
public:
    static constexpr std::size_t kDraftMax = 4;
    /// Least and most positions that a guess looks back.
    static constexpr std::size_t kReach = 60;
    static constexpr std::size_t kReachMax = 128;

    struct Wish {
        Sequence* sequence = nullptr;
        std::size_t most = 0;  ///< Tokens, from 1 to kDraftMax.
    };

    /// `forward` takes up to `rows_max` >= `sequences_max` rows and outlives the drafter; up to `sequences_max` sequences
    /// draft. The model has a head. Error `kIo`: no memory.
    [[nodiscard]] static Result<std::unique_ptr<MtpDrafter>> create(
        std::shared_ptr<const Model> model, Forward& forward, std::size_t rows_max,
        std::size_t sequences_max);

    /// Of the head's own cache.
    [[nodiscard]] static KvPool::Shape pool_shape(const checkpoint::HyperParameters& parameters,
                                                  std::size_t sequences_max);

    /// Takes the hidden states of rows `row`.. of forward's last pass: of `count` positions of a
    /// sequence from `position` on.
    void remember(MtpMemory& memory, std::size_t row, std::size_t position, std::size_t count);

    /// Fills the `draft` of sequences that lack one token to be computed; leaves it empty where the
    /// last computed position was not remembered. Returns the passes of the head that it took.
    std::size_t draft(std::span<const Wish> wishes);

private:
    MtpDrafter(std::shared_ptr<const Model> model, Forward& forward, std::size_t rows_max,
               KvPool pool);
    [[nodiscard]] bool make_room(MtpMemory& memory, std::size_t most);
    void add_waiting(std::size_t wish);
    void add_guess(std::size_t wish);
    void pass();

    std::shared_ptr<const Model> model_;
    std::size_t width_;
    Forward* forward_;
    std::size_t rows_max_;
    std::size_t waiting_max_;  ///< Positions of a sequence that are worth giving to the head.
    std::shared_ptr<KvPool> pool_;
    SamplerScratch scratch_;
    Batch batch_;
    std::vector<float> inputs_;  ///< Hidden states of the batch's rows.
    std::vector<float> next_;    ///< The head's last hidden state for each wish [wishes][width].
    std::span<const Wish> wishes_;
    std::size_t passes_ = 0;
};

}  // namespace sluice::engine
