#include "engine/mtp_drafter.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "engine/sequence.h"

namespace sluice::engine {
namespace {

constexpr std::size_t kBlockTokens = 64;
constexpr std::size_t kBlocksMax = MtpDrafter::kReachMax / kBlockTokens;
// A cache that is full gives up its first block; what waits and what is guessed fits behind the rest.
static_assert(MtpDrafter::kReach + MtpDrafter::kDraftMax + kBlockTokens <= MtpDrafter::kReachMax);

}  // namespace

MtpMemory& MtpMemory::operator=(MtpMemory&& other) noexcept {
    if (this == &other) return *this;
    clear();
    pool_ = std::exchange(other.pool_, nullptr);
    blocks_ = std::exchange(other.blocks_, {});
    origin_ = std::exchange(other.origin_, 0);
    seen_ = std::exchange(other.seen_, 0);
    hidden_ = std::exchange(other.hidden_, {});
    return *this;
}

void MtpMemory::clear() {
    if (pool_) pool_->release(blocks_);
    pool_.reset();
    blocks_.clear();
    hidden_.clear();
    origin_ = seen_ = 0;
}

Result<std::unique_ptr<MtpDrafter>> MtpDrafter::create(std::shared_ptr<const Model> model,
                                                       Forward& forward, std::size_t rows_max,
                                                       std::size_t sequences_max) {
    SLUICE_ASSERT(model->mtp() != nullptr && rows_max >= sequences_max);
    auto pool = KvPool::create(pool_shape(model->parameters(), sequences_max));
    if (!pool) return std::unexpected(pool.error());
    return std::unique_ptr<MtpDrafter>(
        new MtpDrafter(std::move(model), forward, rows_max, std::move(*pool)));
}

KvPool::Shape MtpDrafter::pool_shape(const checkpoint::HyperParameters& parameters,
                                     std::size_t sequences_max) {
    return {.blocks = sequences_max * kBlocksMax,
            .block_tokens = kBlockTokens,
            .layers = 1,
            .row_floats = std::size_t{parameters.kv_rank} + parameters.rope};
}

MtpDrafter::MtpDrafter(std::shared_ptr<const Model> model, Forward& forward, std::size_t rows_max,
                       KvPool pool)
    : model_(std::move(model)),
      width_(model_->parameters().width),
      forward_(&forward),
      rows_max_(rows_max),
      waiting_max_(std::min(kReach, rows_max)),
      pool_(std::make_shared<KvPool>(std::move(pool))),
      scratch_(model_->parameters().vocabulary) {
    const std::size_t sequences = pool_->shape().blocks / kBlocksMax;
    batch_.rows.reserve(rows_max);
    batch_.block_tables.reserve(sequences);
    inputs_.reserve(rows_max * width_);
    next_.resize(sequences * width_);
}

void MtpMemory::forget_before(std::size_t position, std::size_t width) {
    const std::size_t old = (position - seen_) * width;
    const std::size_t left = hidden_.size() > old ? hidden_.size() - old : 0;
    std::vector<float> hidden = std::exchange(hidden_, {});
    clear();
    hidden.erase(hidden.begin(), hidden.end() - static_cast<std::ptrdiff_t>(left));
    hidden_ = std::move(hidden);
    origin_ = seen_ = position;
}

void MtpDrafter::remember(MtpMemory& memory, std::size_t row, std::size_t position,
                          std::size_t count) {
    const std::size_t skipped = count - std::min(count, waiting_max_);
    if (skipped > 0 || memory.end(width_) != position) {
        memory.clear();
        memory.origin_ = memory.seen_ = position + skipped;
    }
    // Nobody drafts. Cut rarely, so that it costs little.
    if (memory.hidden_.size() + (count - skipped) * width_ > 2 * waiting_max_ * width_)
        memory.forget_before(memory.end(width_) - waiting_max_, width_);
    memory.hidden_.reserve(2 * waiting_max_ * width_);
    memory.blocks_.reserve(kBlocksMax);
    for (std::size_t i = skipped; i < count; ++i) {
        const std::size_t size = memory.hidden_.size();
        memory.hidden_.resize(size + width_);
        forward_->hidden(row + i, std::span(memory.hidden_).subspan(size));
    }
}

// Blocks for what waits and for `most` guesses; the first ones go when there are too many.
bool MtpDrafter::make_room(MtpMemory& memory, std::size_t most) {
    if (memory.hidden_.size() > waiting_max_ * width_)
        memory.forget_before(memory.end(width_) - waiting_max_, width_);
    const std::size_t end = memory.end(width_) + most;
    while (end - memory.origin_ > kReachMax) {
        pool_->release(std::span(memory.blocks_).first(1));
        memory.blocks_.erase(memory.blocks_.begin());
        memory.origin_ += kBlockTokens;
    }
    memory.pool_ = pool_;
    while (memory.blocks_.size() * kBlockTokens < end - memory.origin_) {
        const auto block = pool_->allocate();
        if (!block) return false;
        memory.blocks_.push_back(*block);
    }
    return true;
}

std::size_t MtpDrafter::draft(std::span<const Wish> wishes) {
    wishes_ = wishes;
    passes_ = 0;
    batch_.block_tables.assign(wishes.size(), {});
    for (std::size_t i = 0; i < wishes.size(); ++i) {
        Sequence& sequence = *wishes[i].sequence;
        SLUICE_ASSERT(sequence.pending() == 1 && sequence.draft.empty());
        MtpMemory& memory = sequence.mtp;
        const bool is_there = memory.end(width_) == sequence.computed && !memory.hidden_.empty();
        if (is_there && make_room(memory, wishes[i].most)) add_waiting(i);
    }
    pass();
    for (std::size_t depth = 1; depth < kDraftMax; ++depth) {
        for (std::size_t i = 0; i < wishes.size(); ++i)
            if (wishes[i].most > depth && wishes[i].sequence->draft.size() == depth) add_guess(i);
        if (batch_.rows.empty()) break;
        pass();
    }
    return passes_;
}

// The positions whose hidden states wait; the last one's logits are of the first guess.
void MtpDrafter::add_waiting(std::size_t wish) {
    const Sequence& sequence = *wishes_[wish].sequence;
    MtpMemory& memory = wishes_[wish].sequence->mtp;
    const std::size_t count = memory.hidden_.size() / width_;
    if (batch_.rows.size() + count > rows_max_) pass();
    batch_.block_tables[wish] = memory.blocks_;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t position = memory.seen_ + i;
        batch_.rows.push_back({.token = sequence.tokens[position + 1],
                               .position = static_cast<std::uint32_t>(position),
                               .origin = static_cast<std::uint32_t>(memory.origin_),
                               .sequence = static_cast<std::uint32_t>(wish),
                               .wants_logits = i + 1 == count});
    }
    inputs_.insert(inputs_.end(), memory.hidden_.begin(), memory.hidden_.end());
    memory.seen_ += count;
    memory.hidden_.clear();
}

// The head goes on from its own last guess. What it keeps of guesses is written over when the true
// tokens are known.
void MtpDrafter::add_guess(std::size_t wish) {
    const Sequence& sequence = *wishes_[wish].sequence;
    if (sequence.sampler.is_stop(sequence.draft.back())) return;
    const std::size_t position = sequence.mtp.seen_ - 1 + sequence.draft.size();
    batch_.rows.push_back({.token = sequence.draft.back(),
                           .position = static_cast<std::uint32_t>(position),
                           .origin = static_cast<std::uint32_t>(sequence.mtp.origin_),
                           .sequence = static_cast<std::uint32_t>(wish),
                           .wants_logits = true});
    const auto hidden = std::span(next_).subspan(wish * width_, width_);
    inputs_.insert(inputs_.end(), hidden.begin(), hidden.end());
}

// The sampler itself picks from the head's logits, with the noise of that very position: where both
// distributions are alike, so are both picks.
void MtpDrafter::pass() {
    if (batch_.rows.empty()) return;
    forward_->run_mtp(batch_, inputs_, *pool_, [this](std::size_t row, std::span<float> logits) {
        const std::size_t wish = batch_.rows[row].sequence;
        Sequence& sequence = *wishes_[wish].sequence;
        const std::size_t position = sequence.tokens.size() + sequence.draft.size();
        const auto guess = sequence.sampler.pick(logits, position, scratch_);
        if (!guess) return;
        sequence.draft.push_back(*guess);
        forward_->hidden(row, std::span(next_).subspan(wish * width_, width_));
    });
    batch_.rows.clear();
    inputs_.clear();
    ++passes_;
}

}  // namespace sluice::engine
