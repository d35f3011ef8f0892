#include "engine/scheduler.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/assert.h"

namespace sluice::engine {

Scheduler::Scheduler(KvPool& pool, const Limits& limits) : pool_(pool), limits_(limits) {
    SLUICE_ASSERT(limits.running_max > 0 && limits.step_tokens >= limits.running_max);
    running_.reserve(limits.running_max);
    parts_.reserve(limits.running_max);
}

Scheduler::~Scheduler() {
    for (const SequencePtr& sequence : running_) pool_.release(sequence->blocks);
}

void Scheduler::add(SequencePtr sequence) { enqueue(std::move(sequence)); }

// Keeps (priority descending, arrival ascending), so that a preempted sequence comes back to its place.
void Scheduler::enqueue(SequencePtr sequence) {
    const auto before = [&](const SequencePtr& other) {
        if (other->request.priority != sequence->request.priority)
            return other->request.priority > sequence->request.priority;
        return other->arrival < sequence->arrival;
    };
    const auto place = std::ranges::find_if_not(waiting_, before);
    waiting_.insert(place, std::move(sequence));
}

SequencePtr Scheduler::remove(std::string_view id) {
    const auto is_it = [id](const SequencePtr& each) { return each->request.id == id; };
    SequencePtr removed;
    if (const auto at = std::ranges::find_if(running_, is_it); at != running_.end()) {
        removed = std::move(*at);
        running_.erase(at);
        pool_.release(removed->blocks);
        removed->blocks.clear();
    } else if (const auto queued = std::ranges::find_if(waiting_, is_it);
               queued != waiting_.end()) {
        removed = std::move(*queued);
        waiting_.erase(queued);
    }
    return removed;
}

std::size_t Scheduler::blocks_for(std::size_t tokens) const {
    const std::size_t size = pool_.shape().block_tokens;
    return (tokens + size - 1) / size;
}

void Scheduler::extend_keys(Sequence& sequence, std::size_t full_blocks) const {
    const std::size_t size = pool_.shape().block_tokens;
    while (sequence.keys.size() < full_blocks) {
        const std::size_t block = sequence.keys.size();
        const kv::BlockKey& parent = block == 0 ? sequence.root : sequence.keys.back();
        sequence.keys.push_back(
            kv::child_key(parent, std::span(sequence.tokens).subspan(block * size, size)));
    }
}

// At least the last token is computed, since its logits are wanted; where log-probabilities of the
// input are wanted, so are the tokens before them.
void Scheduler::take_cached_prefix(Sequence& sequence) {
    std::size_t usable = sequence.tokens.size() - 1;
    if (sequence.request.logprob_start >= 0) {
        const auto start = static_cast<std::size_t>(sequence.request.logprob_start);
        usable = std::min(usable, start == 0 ? 0 : start - 1);
    }
    const std::size_t full_blocks = usable / pool_.shape().block_tokens;
    extend_keys(sequence, full_blocks);
    pool_.take_prefix(std::span(sequence.keys).first(full_blocks), sequence.blocks);
    sequence.computed = sequence.blocks.size() * pool_.shape().block_tokens;
}

void Scheduler::admit() {
    while (!waiting_.empty() && running_.size() < limits_.running_max) {
        SequencePtr& next = waiting_.front();
        take_cached_prefix(*next);
        // Room for what is known now; what it generates later may cost another its place.
        const std::size_t missing = blocks_for(next->tokens.size()) - next->blocks.size();
        if (missing > pool_.available()) {
            pool_.release(next->blocks);
            next->blocks.clear();
            next->computed = 0;
            return;
        }
        if (!std::exchange(next->admitted, true)) {
            next->cached = std::min(next->computed, next->prompt_tokens);
            cached_tokens_ += next->cached;
        }
        running_.push_back(std::move(next));
        waiting_.pop_front();
    }
}

void Scheduler::preempt_last() {
    SequencePtr last = std::move(running_.back());
    running_.pop_back();
    pool_.release(last->blocks);
    last->blocks.clear();
    last->computed = 0;
    last->draft.clear();
    last->mtp.clear();
    last->progress.input_logprobs.clear();
    ++preemptions_;
    enqueue(std::move(last));
}

bool Scheduler::reserve(Sequence& sequence, std::size_t tokens) {
    while (sequence.blocks.size() < blocks_for(tokens)) {
        if (const auto block = pool_.allocate()) {
            sequence.blocks.push_back(*block);
            continue;
        }
        const bool itself = running_.back().get() == &sequence;
        preempt_last();
        if (itself) return false;
    }
    return true;
}

std::size_t Scheduler::draft_room(const Sequence& sequence, std::size_t budget) const {
    if (budget == 0 || sequence.draft.empty()) return 0;
    const std::size_t size = pool_.shape().block_tokens;
    const std::size_t with_one = blocks_for(sequence.computed + 1);
    const std::size_t held = std::max(sequence.blocks.size(), with_one);
    const std::size_t drafts = std::min(sequence.draft.size(), budget - 1);
    const std::size_t wanted = blocks_for(sequence.computed + 1 + drafts);
    if (wanted <= held || wanted - held + (held - sequence.blocks.size()) <= pool_.available())
        return drafts;
    return std::min(drafts, held * size - sequence.computed - 1);
}

std::span<const StepPart> Scheduler::plan() {
    admit();
    parts_.clear();
    std::size_t budget = limits_.step_tokens;
    const auto take = [&](std::size_t index, std::size_t most) {
        Sequence& sequence = *running_[index];
        std::size_t count = std::min({sequence.pending(), most, budget});
        if (sequence.pending() == 1) count += draft_room(sequence, budget);
        if (count == 0 || !reserve(sequence, sequence.computed + count)) return;
        parts_.push_back({&sequence, count});
        budget -= count;
    };
    // Whoever is preempted stands behind the one that needs room, so it is in no part yet: decodes
    // come first in both passes, and a later part never takes from an earlier one.
    for (std::size_t i = 0; i < running_.size(); ++i)
        if (running_[i]->pending() == 1) take(i, 1);
    for (std::size_t i = 0; i < running_.size(); ++i)
        if (running_[i]->pending() > 1) take(i, limits_.prefill_chunk);
    // A decode further back may have lost its place to a prefill in front of it.
    std::erase_if(parts_, [this](const StepPart& part) {
        return std::ranges::none_of(
            running_, [&](const SequencePtr& each) { return each.get() == part.sequence; });
    });
    return parts_;
}

void Scheduler::complete(Sequence& sequence, std::size_t computed) {
    const std::size_t size = pool_.shape().block_tokens;
    const std::size_t sealed = sequence.computed / size;
    sequence.computed = computed;
    const std::size_t full = sequence.computed / size;
    extend_keys(sequence, full);
    for (std::size_t block = sealed; block < full; ++block)
        pool_.seal(sequence.blocks[block], sequence.keys[block]);
}

}  // namespace sluice::engine
