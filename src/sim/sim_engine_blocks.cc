// What SimEngine's sequences hold; the rest of it is in sim_engine.cc.

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "sim/sim_engine.h"
#include "trace/trace.h"

namespace sluice::sim {

using trace::kTraceBlockTokens;

std::uint32_t SimEngine::answer_blocks(std::uint32_t tokens) {
    return (tokens + kTraceBlockTokens - 1) / kTraceBlockTokens;
}

bool SimEngine::give_blocks(const SequencePtr& sequence) {
    const Job& job = sequence->job;
    if (job.phase == Job::Phase::kEncode) return true;
    const std::vector<BlockKey>& chain = *job.chain;
    const std::uint32_t found = cache_.match(chain);
    cache_.hold(chain, found);
    const auto missing =
        static_cast<std::uint32_t>(chain.size()) - found + answer_blocks(job.answered + 1);
    if (!cache_.allocate(missing)) {
        cache_.release(std::span(chain).first(found));
        return false;
    }
    sequence->sealed = found;
    sequence->unnamed = missing;
    // At least one token is computed: its logits are wanted.
    sequence->computed =
        std::min({found * kTraceBlockTokens, job.prompt_tokens, sequence->tokens - 1});
    CachedTokens cached;
    cached.from(CacheSource::kPool) = sequence->computed;
    if (tiers_ && !job.brings_kv) cached += load(sequence);
    if (std::exchange(sequence->counted, true)) return true;
    totals_.prompt_tokens += job.prompt_tokens;
    totals_.cached_tokens += cached.sum();
    if (sequence->observer != nullptr) sequence->observer->on_admitted(cached);
    return true;
}

/// Starts to bring in what is behind the pool.
CachedTokens SimEngine::load(const SequencePtr& sequence) {
    const Job& job = sequence->job;
    std::uint64_t others = 0;
    for (const SequencePtr& each : running_)
        if (!each->decodes() && !each->loading) others += each->pending();
    const Duration busy =
        from_microseconds(parameters_.prefill_row_us * static_cast<double>(others));
    const std::uint32_t most = std::min(job.prompt_tokens, sequence->tokens - 1);
    const CacheTiers::Load load =
        tiers_->load(*job.chain, sequence->sealed, most, busy, queue_.now());
    if (load.blocks == 0) return {};
    const std::uint32_t until =
        std::min((sequence->sealed + load.blocks) * kTraceBlockTokens, most);
    sequence->loading = true;
    sequence->load = queue_.at(load.ready, [this, sequence, until] {
        sequence->loading = false;
        sequence->computed = until;
        seal_to(*sequence, until);
        tell_blocks();
        kick();
    });
    return load.tokens;
}

void SimEngine::free_blocks(Sequence& sequence) {
    queue_.cancel(sequence.load);
    if (sequence.sealed > 0) cache_.release(std::span(*sequence.job.chain).first(sequence.sealed));
    cache_.give_back(sequence.unnamed);
    sequence.sealed = 0;
    sequence.unnamed = 0;
    sequence.computed = 0;
    sequence.loading = false;
}

void SimEngine::seal_to(Sequence& sequence, std::uint32_t computed) {
    if (sequence.job.phase == Job::Phase::kEncode) return;
    const std::vector<BlockKey>& chain = *sequence.job.chain;
    const std::uint32_t first = sequence.sealed;
    for (std::uint32_t& block = sequence.sealed; block < chain.size(); ++block) {
        if (computed < std::min((block + 1) * kTraceBlockTokens, sequence.job.prompt_tokens)) break;
        cache_.seal(chain[block], block == 0 ? 0 : chain[block - 1]);
        --sequence.unnamed;
    }
    if (tiers_ && sequence.sealed > first)
        tiers_->store(std::span(chain).first(sequence.sealed), first);
}

void SimEngine::pull(const SequencePtr& sequence) {
    const std::uint32_t missing = sequence->tokens - 1 - sequence->computed;
    sequence->loading = true;
    queue_.after(from_microseconds(parameters_.handover_token_us * missing),
                 [this, sequence] { on_pulled(sequence); });
}

void SimEngine::on_pulled(const SequencePtr& sequence) {
    // It may have lost its place meanwhile, or its engine.
    if (!std::exchange(sequence->loading, false) || sequence->observer == nullptr) return;
    sequence->job.brings_kv = false;
    sequence->computed = sequence->tokens - 1;
    seal_to(*sequence, sequence->computed);
    give_notice(sequence, Notice::kPulled);
    kick();
}

void SimEngine::hold(const SequencePtr& sequence) {
    const JobId id = sequence->job.id;
    const EventQueue::EventId end = queue_.after(std::chrono::seconds(limits::kKvHoldSeconds),
                                                 [this, id] { release_hold(id); });
    holds_.insert_or_assign(id, Hold{.sequence = sequence, .end = end});
}

void SimEngine::release_hold(JobId id) {
    const auto at = holds_.find(id);
    if (at == holds_.end()) return;
    queue_.cancel(at->second.end);
    free_blocks(*at->second.sequence);
    holds_.erase(at);
    kick();
}

}  // namespace sluice::sim
