#pragma once

// Decides what each step computes: first one token for every sequence that is generating, then
// chunks of prompts, within a budget of tokens. Where sequences are generating, chunks end where the
// step would take longer than `step_time` by StepForecast's prediction: a long prompt holds nobody up. The
// shortest rest of a prompt goes first, but a quarter of each step's is for the prompt that has waited
// longest, so short ones don't wait for long ones, and long ones don't starve.
//
// It owns the order of requests and the pool's blocks; it computes nothing and knows no clock.
//
// Blocks may come into the pool while a prompt is computed. A chunk ends where the next of them begins,
// and the prompt goes on behind it: a hole in a chain costs what was in the hole.
//
// When blocks run out, the last of the running sequences gives its blocks up and waits; it is computed
// again later, with the same bits. What is scheduled when changes no token, only its time.

#include <chrono>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "engine/kv_pool.h"
#include "engine/sequence.h"
#include "engine/step_forecast.h"

namespace sluice::engine {

/// `count` tokens of `sequence`, starting at its first uncomputed one. Beyond the tokens it has, they
/// are the first of its draft.
struct StepPart {
    Sequence* sequence = nullptr;
    std::size_t count = 0;
};

class Scheduler {
public:
    struct Limits {
        std::size_t running_max = 64;
        std::size_t step_tokens = 512;
        std::size_t prefill_chunk = 512;  ///< Most prompt tokens of one sequence per step.
        std::chrono::nanoseconds step_time = std::chrono::milliseconds(50);
    };

    /// The least that a step computes of prompts, whatever it costs: they must get on, too.
    static constexpr std::size_t kPrefillLeast = 16;

    Scheduler(KvPool& pool, const Limits& limits, const StepForecast& cost);
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    /// Queues a sequence behind those of its priority.
    void add(SequencePtr sequence);

    /// Gives places to those that wait, as `plan` does; the planned step may be computed meanwhile.
    void admit();

    /// Takes a sequence out and gives its blocks back; null if there is none with this id.
    [[nodiscard]] SequencePtr remove(std::string_view id);

    /// The same, but its blocks stay held and are the caller's to give back.
    [[nodiscard]] SequencePtr take_out(std::string_view id);

    /// The next step; empty if there is nothing to do. Every part's positions have blocks. Valid until
    /// the next call.
    [[nodiscard]] std::span<const StepPart> plan();

    /// What the last plan costs.
    [[nodiscard]] const StepWork& work() const { return work_; }

    /// The first `computed` tokens of the sequence are computed: names the blocks that are full now.
    void complete(Sequence& sequence, std::size_t computed);

    /// Calls `work` for each sequence that the next step decodes.
    template <class Work>
    void for_each_decoding(const Work& work) {
        for (const SequencePtr& sequence : running_)
            if (sequence->pending() == 1) work(*sequence);
    }

    [[nodiscard]] std::size_t running() const { return running_.size(); }
    [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
    /// Tokens that are known and not computed, of all sequences; what waits counts as a whole.
    [[nodiscard]] std::size_t pending_tokens() const;
    [[nodiscard]] std::uint64_t preemptions() const { return preemptions_; }
    [[nodiscard]] std::uint64_t cached_tokens() const { return cached_tokens_; }

private:
    void take_cached_prefix(Sequence& sequence);
    /// Most leading tokens that need not be computed if somebody else has them.
    [[nodiscard]] static std::size_t usable_tokens(const Sequence& sequence);
    /// Takes blocks that came into the pool right behind what the sequence has computed: from another
    /// machine, or from a sequence with the same prefix.
    void take_what_came(Sequence& sequence);
    /// Tokens until the next block that the pool has, if that is less than `most`: they fill a hole.
    [[nodiscard]] std::size_t hole(const Sequence& sequence, std::size_t most);
    /// Of at most `usable` tokens, the part that others computed beyond the last full block.
    void take_imported_tail(Sequence& sequence, std::size_t usable);
    /// Gives `sequence` blocks for `tokens` tokens, preempting later ones if it must.
    [[nodiscard]] bool reserve(Sequence& sequence, std::size_t tokens);
    /// How much of its draft a decoding sequence may have checked: guesses cost nobody a block.
    [[nodiscard]] std::size_t draft_room(const Sequence& sequence, std::size_t budget) const;
    void plan_decodes();
    void plan_prefills();
    /// Prompt tokens that this step may compute, given the decodes in it.
    [[nodiscard]] std::size_t prefill_budget(const Sequence& oldest) const;
    /// At most `most` tokens of the sequence into the step; returns how many it became.
    std::size_t take(Sequence& sequence, std::size_t most);
    void add_work(const Sequence& sequence, std::size_t count);
    void preempt_last();
    void enqueue(SequencePtr sequence);
    [[nodiscard]] std::size_t blocks_for(std::size_t tokens) const;

    KvPool& pool_;
    Limits limits_;
    const StepForecast& cost_;
    std::deque<SequencePtr> waiting_;  ///< By priority, then arrival.
    std::vector<SequencePtr> running_;
    // The plan in the making, or the last one.
    std::vector<StepPart> parts_;
    StepWork work_;
    std::vector<Sequence*> prefills_;  ///< In the order in which they are served.
    std::size_t waiting_tokens_ = 0;
    std::uint64_t preemptions_ = 0;
    std::uint64_t cached_tokens_ = 0;
};

}  // namespace sluice::engine
