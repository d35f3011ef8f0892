#include "engine/scheduler.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/assert.h"

namespace sluice::engine {

Scheduler::Scheduler(KvPool& pool, const Limits& limits, const StepForecast& cost)
    : pool_(pool), limits_(limits), cost_(cost) {
    SLUICE_ASSERT(limits.running_max > 0 && limits.step_tokens >= limits.running_max);
    running_.reserve(limits.running_max);
    parts_.reserve(limits.running_max);
    prefills_.reserve(limits.running_max);
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
    waiting_tokens_ += sequence->tokens.size();
    const auto place = std::ranges::find_if_not(waiting_, before);
    waiting_.insert(place, std::move(sequence));
}

SequencePtr Scheduler::remove(std::string_view id) {
    SequencePtr removed = take_out(id);
    if (removed) {
        pool_.release(removed->blocks);
        removed->blocks.clear();
    }
    return removed;
}

SequencePtr Scheduler::take_out(std::string_view id) {
    const auto is_it = [id](const SequencePtr& each) { return each->request.id == id; };
    SequencePtr removed;
    if (const auto at = std::ranges::find_if(running_, is_it); at != running_.end()) {
        removed = std::move(*at);
        running_.erase(at);
    } else if (const auto queued = std::ranges::find_if(waiting_, is_it);
               queued != waiting_.end()) {
        removed = std::move(*queued);
        waiting_tokens_ -= removed->tokens.size();
        waiting_.erase(queued);
    }
    return removed;
}

std::size_t Scheduler::blocks_for(std::size_t tokens) const {
    const std::size_t size = pool_.shape().block_tokens;
    return (tokens + size - 1) / size;
}

// At least the last token is computed, since its logits are wanted; where log-probabilities of the
// input are wanted, so are the tokens before them.
std::size_t Scheduler::usable_tokens(const Sequence& sequence) {
    const std::size_t usable = sequence.tokens.size() - 1;
    if (sequence.request.logprob_start < 0) return usable;
    const auto start = static_cast<std::size_t>(sequence.request.logprob_start);
    return std::min(usable, start == 0 ? 0 : start - 1);
}

void Scheduler::take_cached_prefix(Sequence& sequence) {
    const std::size_t usable = usable_tokens(sequence);
    const std::size_t full_blocks = usable / pool_.shape().block_tokens;
    sequence.name_blocks(full_blocks, pool_.shape().block_tokens);
    pool_.take_prefix(std::span(sequence.keys).first(full_blocks), sequence.blocks);
    sequence.computed = sequence.blocks.size() * pool_.shape().block_tokens;
    take_imported_tail(sequence, usable);
}

void Scheduler::take_imported_tail(Sequence& sequence, std::size_t usable) {
    const std::size_t imported = std::min(sequence.request.imported_tokens, usable);
    const std::size_t full = sequence.blocks.size();
    if (imported <= sequence.computed || imported / pool_.shape().block_tokens > full) return;
    const auto tail =
        std::span(sequence.tokens).subspan(sequence.computed, imported - sequence.computed);
    const kv::BlockKey& parent = full == 0 ? sequence.names.root() : sequence.keys[full - 1];
    const auto block = pool_.take_alone(sequence.names.child(parent, sequence.computed, tail));
    if (!block) return;
    sequence.blocks.push_back(*block);
    sequence.computed = imported;
}

void Scheduler::take_what_came(Sequence& sequence) {
    const std::size_t size = pool_.shape().block_tokens;
    if (sequence.computed != sequence.blocks.size() * size) return;
    const std::size_t last = std::min(sequence.keys.size(), usable_tokens(sequence) / size);
    while (sequence.blocks.size() < last) {
        const auto block = pool_.take(sequence.keys[sequence.blocks.size()]);
        if (!block) return;
        sequence.blocks.push_back(*block);
        sequence.computed += size;
        if (sequence.computed <= sequence.reached || sequence.computed > sequence.prompt_tokens)
            continue;
        sequence.cached += size;
        cached_tokens_ += size;
    }
}

std::size_t Scheduler::hole(const Sequence& sequence, std::size_t most) {
    const std::size_t size = pool_.shape().block_tokens;
    const std::size_t last = std::min(sequence.keys.size(), usable_tokens(sequence) / size);
    for (std::size_t block = sequence.computed / size + 1; block < last; ++block) {
        const std::size_t end = block * size - sequence.computed;
        if (end >= most) break;
        if (pool_.has(sequence.keys[block])) return end;
    }
    return most;
}

std::size_t Scheduler::pending_tokens() const {
    std::size_t tokens = waiting_tokens_;
    for (const SequencePtr& sequence : running_)
        if (sequence->pending() > 1) tokens += sequence->pending();
    return tokens;
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
        waiting_tokens_ -= next->tokens.size();
        running_.push_back(std::move(next));
        waiting_.pop_front();
    }
}

void Scheduler::preempt_last() {
    SequencePtr last = std::move(running_.back());
    running_.pop_back();
    pool_.release(last->blocks);
    last->blocks.clear();
    last->reached = std::max(last->reached, last->computed);
    last->computed = 0;
    last->draft.clear();
    last->mtp.clear();
    last->progress.input_logprobs.clear();
    ++preemptions_;
    // A prompt further back may have been served before the one that needs room.
    std::erase_if(parts_, [&](const StepPart& part) { return part.sequence == last.get(); });
    std::erase(prefills_, last.get());
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
    prefills_.clear();
    work_ = {};
    for (const SequencePtr& sequence : running_)
        if (sequence->pending() > 1) take_what_came(*sequence);
    plan_decodes();
    plan_prefills();
    work_ = {};  // Anew, because a part may have been taken back.
    for (const StepPart& part : parts_) add_work(*part.sequence, part.count);
    return parts_;
}

std::size_t Scheduler::take(Sequence& sequence, std::size_t most) {
    const std::size_t count = std::min(most, limits_.step_tokens - work_.rows);
    if (count == 0 || !reserve(sequence, sequence.computed + count)) return 0;
    parts_.push_back({&sequence, count});
    add_work(sequence, count);
    return count;
}

void Scheduler::add_work(const Sequence& sequence, std::size_t count) {
    work_.add_rows(sequence.computed, count);
    const std::size_t end = sequence.computed + count;
    if (end >= sequence.tokens.size()) work_.logits += end - sequence.tokens.size() + 1;
    if (sequence.request.logprob_start < 0) return;
    const auto start = static_cast<std::size_t>(sequence.request.logprob_start);
    const std::size_t first = std::max(sequence.computed, start == 0 ? 0 : start - 1);
    const std::size_t last = std::min(end, sequence.prompt_tokens - 1);
    if (last > first) work_.logits += last - first;
}

void Scheduler::plan_decodes() {
    // By index: whoever needs room may preempt those behind it.
    for (std::size_t i = 0; i < running_.size(); ++i) {
        Sequence& sequence = *running_[i];
        if (sequence.pending() != 1) continue;
        take(sequence, 1 + draft_room(sequence, limits_.step_tokens - work_.rows));
    }
}

std::size_t Scheduler::prefill_budget(const Sequence& oldest) const {
    const std::size_t room = limits_.step_tokens - work_.rows;
    if (parts_.empty()) return room;
    const std::size_t timely = cost_.rows_within(limits_.step_time, work_, oldest.computed, room);
    return std::min(room, std::max(timely, kPrefillLeast));
}

void Scheduler::plan_prefills() {
    for (const SequencePtr& sequence : running_)
        if (sequence->pending() > 1) prefills_.push_back(sequence.get());
    if (prefills_.empty()) return;
    const Sequence* oldest = prefills_.front();
    const bool timed = !parts_.empty();
    std::ranges::sort(prefills_, {}, [](const Sequence* sequence) {
        return std::pair(sequence->pending(), sequence->arrival);
    });
    std::size_t budget = prefill_budget(*oldest);
    std::size_t kept = std::max(budget / 4, std::min(budget, kPrefillLeast));
    for (std::size_t i = 0; i < prefills_.size() && budget > 0;) {
        Sequence& sequence = *prefills_[i];
        if (&sequence == oldest) kept = 0;
        std::size_t most = std::min({budget - kept, sequence.pending(), limits_.prefill_chunk});
        if (timed) {
            const std::size_t least = &sequence == oldest ? std::min(most, kPrefillLeast) : 0;
            most = std::max(least,
                            cost_.rows_within(limits_.step_time, work_, sequence.computed, most));
        }
        budget -= take(sequence, hole(sequence, most));
        // Unless it gave its place up itself.
        if (i < prefills_.size() && prefills_[i] == &sequence) ++i;
    }
}

void Scheduler::complete(Sequence& sequence, std::size_t computed) {
    const std::size_t size = pool_.shape().block_tokens;
    const std::size_t sealed = sequence.computed / size;
    sequence.computed = computed;
    const std::size_t full = sequence.computed / size;
    sequence.name_blocks(full, size);
    for (std::size_t block = sealed; block < full; ++block)
        pool_.seal(sequence.blocks[block], sequence.name_of(block), sequence.request.owner);
}

}  // namespace sluice::engine
