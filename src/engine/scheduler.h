#pragma once

// Decides what each step computes: first one token for every sequence that is generating, then
// chunks of prompts, within a budget of tokens. It owns the order of requests and the pool's blocks;
// it computes nothing and knows no clock.
//
// When blocks run out, the last of the running sequences gives its blocks up and waits; it is computed
// again later, with the same bits. What is scheduled when changes no token, only its time.

#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "engine/kv_pool.h"
#include "engine/sequence.h"

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
    };

    Scheduler(KvPool& pool, const Limits& limits);
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    /// Queues a sequence behind those of its priority.
    void add(SequencePtr sequence);

    /// Takes a sequence out and gives its blocks back; null if there is none with this id.
    [[nodiscard]] SequencePtr remove(std::string_view id);

    /// The next step; empty if there is nothing to do. Every part's positions have blocks. Valid until
    /// the next call.
    [[nodiscard]] std::span<const StepPart> plan();

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
    [[nodiscard]] std::uint64_t preemptions() const { return preemptions_; }
    [[nodiscard]] std::uint64_t cached_tokens() const { return cached_tokens_; }

private:
    void admit();
    void take_cached_prefix(Sequence& sequence);
    /// Gives `sequence` blocks for `tokens` tokens, preempting later ones if it must.
    [[nodiscard]] bool reserve(Sequence& sequence, std::size_t tokens);
    /// How much of its draft a decoding sequence may have checked: guesses cost nobody a block.
    [[nodiscard]] std::size_t draft_room(const Sequence& sequence, std::size_t budget) const;
    void preempt_last();
    void enqueue(SequencePtr sequence);
    [[nodiscard]] std::size_t blocks_for(std::size_t tokens) const;
    void extend_keys(Sequence& sequence, std::size_t full_blocks) const;

    KvPool& pool_;
    Limits limits_;
    std::deque<SequencePtr> waiting_;  ///< By priority, then arrival.
    std::vector<SequencePtr> running_;
    std::vector<StepPart> parts_;  ///< Of the last plan.
    std::uint64_t preemptions_ = 0;
    std::uint64_t cached_tokens_ = 0;
};

}  // namespace sluice::engine
