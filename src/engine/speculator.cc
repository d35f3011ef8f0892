#include "engine/speculator.h"

#include <algorithm>

namespace sluice::engine {
namespace {

/// Rows of a step up to which guesses are made that nobody has measured: beyond, a batch has no idle
/// arithmetic to check them with.
constexpr std::size_t kUnmeasuredRows = 32;

/// A sequence whose look-ups do worse is left to the head.
constexpr double kPoorAcceptance = 0.5;

using Seconds = std::chrono::duration<double>;

}  // namespace

bool Speculator::uses_head(Speculation kind, const Model& model) {
    return model.mtp() != nullptr && (kind == Speculation::kMtp || kind == Speculation::kAuto);
}

Result<std::unique_ptr<Speculator>> Speculator::create(Speculation kind,
                                                       const std::shared_ptr<const Model>& model,
                                                       Forward& forward, std::size_t rows_max,
                                                       std::size_t sequences_max) {
    if (kind == Speculation::kMtp && model->mtp() == nullptr)
        return std::unexpected(Error::unsupported("the model has no MTP head", "speculation"));
    std::unique_ptr<MtpDrafter> head;
    if (uses_head(kind, *model)) {
        auto created = MtpDrafter::create(model, forward, rows_max, sequences_max);
        if (!created) return std::unexpected(created.error());
        head = std::move(*created);
    }
    return std::unique_ptr<Speculator>(new Speculator(kind, std::move(head), sequences_max));
}

Speculator::Speculator(Speculation kind, std::unique_ptr<MtpDrafter> head,
                       std::size_t sequences_max)
    : kind_(kind), head_(std::move(head)) {
    looked_up_.reserve(sequences_max);
    lookups_.reserve(sequences_max);
    wishes_.reserve(sequences_max);
}

void Speculator::propose(Scheduler& scheduler) {
    if (kind_ == Speculation::kOff) return;
    gather(scheduler);
    const DraftPolicy::Lengths lengths = choose(scheduler.running());
    for (std::size_t i = 0; i < looked_up_.size(); ++i)
        looked_up_[i]->draft.resize(std::min(lookups_[i].length, lengths.lookup));
    if (lengths.head > 0 && !wishes_.empty()) guess_by_head(lengths.head);
}

void Speculator::gather(Scheduler& scheduler) {
    decoding_ = 0;
    looked_up_.clear();
    lookups_.clear();
    wishes_.clear();
    scheduler.for_each_decoding([this](Sequence& sequence) {
        ++decoding_;
        // A guess that no step had room for is as good as it was.
        if (!sequence.draft.empty()) return;
        if (sequence.request.hand_over) return;  // Only one token is left.
        // The pick after the last guess is a token, too, so one less than what is left to generate.
        const std::size_t left =
            sequence.request.sampling.max_new_tokens - sequence.output_tokens() - 1;
        if (left == 0) return;
        if (kind_ != Speculation::kMtp) {
            const auto guess = sequence.lookup.draft(sequence.tokens, left);
            // Without a head, or with a good look-up, the past is what guesses.
            const bool is_poor = head_ && sequence.lookup.acceptance() < kPoorAcceptance;
            if (!guess.empty() && !is_poor) {
                sequence.draft.assign(guess.begin(), guess.end());
                sequence.drafted_by = DraftSource::kLookup;
                looked_up_.push_back(&sequence);
                lookups_.push_back(
                    {.length = guess.size(), .acceptance = sequence.lookup.acceptance()});
                return;
            }
        }
        if (head_)
            wishes_.push_back(
                {.sequence = &sequence, .most = std::min(left, MtpDrafter::kDraftMax)});
    });
}

DraftPolicy::Lengths Speculator::choose(std::size_t running) {
    if (kind_ == Speculation::kAuto)
        return policy_.choose(
            {.sequences = decoding_, .lookups = lookups_, .head = wishes_.size()});
    const std::size_t share = kUnmeasuredRows / std::max<std::size_t>(running, 1);
    const std::size_t most = share == 0 ? 0 : share - 1;
    return {.lookup = most, .head = std::min(most, policy_.head_length())};
}

void Speculator::guess_by_head(std::size_t length) {
    for (MtpDrafter::Wish& wish : wishes_) {
        wish.most = std::min(wish.most, length);
        wish.sequence->drafted_by = DraftSource::kMtp;
    }
    const auto start = std::chrono::steady_clock::now();
    const std::size_t passes = head_->draft(wishes_);
    const Seconds took = std::chrono::steady_clock::now() - start;
    if (passes > 0) policy_.head_took(wishes_.size(), passes, took.count());
}

void Speculator::remember(Sequence& sequence, std::size_t row, std::size_t position,
                          std::size_t count) {
    if (head_) head_->remember(sequence.mtp, row, position, count);
}

void Speculator::learn(const Sequence& sequence, std::size_t drafted) {
    if (drafted > 0 && sequence.drafted_by == DraftSource::kMtp)
        policy_.head_guessed(drafted, sequence.draft_accepted);
}

void Speculator::step_took(std::size_t rows, std::chrono::nanoseconds duration) {
    if (rows > 0) policy_.step_took(rows, Seconds(duration).count());
}

}  // namespace sluice::engine
