#pragma once

// A simulated engine: continuous batching with chunked prefill, a bounded KV pool with prefix reuse,
// preemption by recompute, and the ways in which engines fail. It computes nothing but time.
//
// Its steps are planned as the native engine plans its own (engine/scheduler.h): one token for every
// sequence that generates, then chunks of prompts. A job is one leg of a request. Its observer hears
// of it from events of the queue only, never from inside a call; after `cancel`, and after the end,
// it hears nothing more.
//
// Split roles: a prefill job ends with its first token and keeps its blocks for who takes them over,
// until `release_hold` or for `limits::kKvHoldSeconds`; a decode job brings the KV of its prompt,
// which takes time by its size.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "dispatch/request.h"
#include "engine/step_forecast.h"
#include "sim/block_cache.h"
#include "sim/cache_tiers.h"
#include "sim/engine_parameters.h"
#include "sim/event_queue.h"

namespace sluice::sim {

using JobId = std::uint64_t;

struct Job {
    enum class Phase : std::uint8_t { kFull, kEncode, kPrefill, kDecode };

    JobId id = 0;
    Phase phase = Phase::kFull;
    /// Of the prompt, its last and partial block included.
    std::shared_ptr<const std::vector<BlockKey>> chain;
    std::uint32_t prompt_tokens = 0;  ///< At least 1.
    std::uint32_t answer_tokens = 0;  ///< In all; at least 1.
    /// Of them, known already and computed like a prompt: a leg that resumes.
    std::uint32_t answered = 0;
    std::uint32_t image_tokens = 0;  ///< To encode before the prompt is computed.
    bool brings_kv = false;          ///< Of the prompt and what is answered, but the last token.
    bool poison = false;             ///< The engine crashes on it.
};

/// Any call may cancel or submit jobs.
class JobObserver {
public:
    virtual ~JobObserver() = default;
    /// It runs; of its prompt so many tokens are in the cache. To be noted only: no calls from here.
    virtual void on_admitted(const CachedTokens& cached) = 0;
    virtual void on_token() = 0;
    /// A prefill job is over: its blocks are held under its id.
    virtual void on_handover() = 0;
    /// A decode job has the KV it brings.
    virtual void on_pulled() = 0;
    virtual void on_end() = 0;
    virtual void on_fault(dispatch::LegFault fault) = 0;
};

/// Counters only grow, also through a restart.
struct EngineTotals {
    std::uint64_t prefill_tokens = 0;  ///< Prompt tokens that were computed.
    std::uint64_t cached_tokens = 0;   ///< Prompt tokens that were not, thanks to the cache.
    std::uint64_t prompt_tokens = 0;   ///< Of jobs that were given blocks: the two above, in time.
    std::uint64_t decode_tokens = 0;
    std::uint64_t encode_tokens = 0;
    std::uint64_t steps = 0;
    Duration computing{};  ///< What its steps took.
    std::uint64_t preemptions = 0;
    std::uint64_t crashes = 0;
};

class SimEngine {
public:
    /// Null `tiers`: nothing is behind its pool.
    SimEngine(EventQueue& queue, EngineParameters parameters,
              std::unique_ptr<CacheTiers> tiers = nullptr);
    ~SimEngine();
    SimEngine(const SimEngine&) = delete;
    SimEngine& operator=(const SimEngine&) = delete;

    void submit(Job job, JobObserver& observer);
    /// Frees everything the job holds before the next step. Nothing for a job that is not here.
    void cancel(JobId id);
    void release_hold(JobId id);

    // ---- Failures
    /// Loses everything; comes back empty after `downtime`.
    void crash(Duration downtime);
    /// Computes nothing for so long, but says nothing of it.
    void stall(Duration duration);
    /// Steps take `factor` times as long.
    void slow(double factor, Duration duration);
    /// Until it crashes again, it serves another model: every job is answered by an error.
    void serve_other_model() { other_model_ = true; }

    [[nodiscard]] bool up() const { return up_; }
    [[nodiscard]] bool other_model() const { return other_model_; }
    /// Counts restarts.
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    [[nodiscard]] std::size_t running() const { return running_.size(); }
    [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
    [[nodiscard]] std::size_t holds() const { return holds_.size(); }
    /// Prompt tokens that are here and not computed.
    [[nodiscard]] std::uint64_t pending_prefill() const;
    /// When it last got on, or had nothing to do.
    [[nodiscard]] Time last_progress() const;
    [[nodiscard]] const EngineTotals& totals() const { return totals_; }
    [[nodiscard]] const EngineParameters& parameters() const { return parameters_; }
    [[nodiscard]] BlockCache& cache() { return cache_; }
    /// Other engines on its machine; they outlive it, or nothing is computed any more.
    void set_neighbours(std::vector<const SimEngine*> engines) { neighbours_ = std::move(engines); }
    [[nodiscard]] bool computing() const { return stepping_; }
    [[nodiscard]] bool holds(JobId id) const { return holds_.contains(id); }
    /// `watch` is called when the cache has events to take.
    void on_blocks(std::function<void()> watch) { on_blocks_ = std::move(watch); }

private:
    struct Sequence {
        Job job;
        JobObserver* observer = nullptr;  ///< Null once it may hear nothing more.
        std::uint64_t serial = 0;         ///< By arrival.
        std::uint32_t tokens = 0;         ///< Known: prompt and answer.
        std::uint32_t computed = 0;
        std::uint32_t encode_left = 0;
        std::uint32_t sealed = 0;   ///< Blocks of the chain that are held by key.
        std::uint32_t unnamed = 0;  ///< Blocks without one.
        bool loading = false;       ///< Its KV is on the way.
        EventQueue::EventId load = 0;
        bool counted = false;  ///< In the totals of cached tokens.

        [[nodiscard]] std::uint32_t pending() const { return tokens - computed; }
        [[nodiscard]] bool decodes() const {
            return !loading && encode_left == 0 && pending() == 1 && tokens > job.prompt_tokens;
        }
    };
    using SequencePtr = std::shared_ptr<Sequence>;
    struct Part {
        SequencePtr sequence;
        std::uint32_t rows = 0;
        std::uint32_t encode_rows = 0;
    };
    enum class Notice : std::uint8_t { kToken, kHandover, kPulled, kEnd };

    void arrive(const SequencePtr& sequence);
    void enqueue(const SequencePtr& sequence);
    void kick();
    void admit();
    [[nodiscard]] bool give_blocks(const SequencePtr& sequence);
    void free_blocks(Sequence& sequence);
    [[nodiscard]] CachedTokens load(const SequencePtr& sequence);
    void pull(const SequencePtr& sequence);
    void on_pulled(const SequencePtr& sequence);
    void seal_to(Sequence& sequence, std::uint32_t computed);

    void plan_decodes();
    void plan_encodes();
    void plan_prefills();
    [[nodiscard]] std::uint32_t prefill_budget(const SequencePtr& oldest) const;
    [[nodiscard]] double duration_us(const StepLoad& load) const;
    [[nodiscard]] std::uint32_t rows_in_time(const Sequence& sequence, std::uint32_t most) const;
    void take(const SequencePtr& sequence, std::uint32_t rows);
    [[nodiscard]] bool reserve_answer(const SequencePtr& sequence);
    void preempt_last();

    void end_step();
    void tell_blocks();
    void finish_part(const Part& part, std::vector<std::pair<SequencePtr, Notice>>& notices);
    void give_notice(const SequencePtr& sequence, Notice notice);
    void hold(const SequencePtr& sequence);
    void fault_later(const SequencePtr& sequence, dispatch::LegFault fault);
    [[nodiscard]] std::uint32_t room_in_step() const;
    [[nodiscard]] double slowness() const;
    [[nodiscard]] static std::uint32_t answer_blocks(std::uint32_t tokens);

    EventQueue& queue_;
    EngineParameters parameters_;
    BlockCache cache_;
    std::unique_ptr<CacheTiers> tiers_;
    std::deque<SequencePtr> waiting_;
    std::vector<SequencePtr> running_;
    std::unordered_map<JobId, SequencePtr> jobs_;  ///< Who is still to hear of something.
    struct Hold {
        SequencePtr sequence;
        EventQueue::EventId end = 0;
    };
    std::unordered_map<JobId, Hold> holds_;
    std::vector<Part> parts_;
    StepLoad load_;
    /// How the engine foresees its steps, and the one in hand as it sees it; see EngineParameters.
    std::optional<engine::StepForecast> forecast_;
    engine::StepWork work_;
    Duration step_took_{};
    EventQueue::EventId step_event_ = 0;
    EventQueue::EventId restart_event_ = 0;
    std::function<void()> on_blocks_;
    std::vector<const SimEngine*> neighbours_;
    bool stepping_ = false;
    Time stalled_until_{};
    Time slow_until_{};
    double slow_factor_ = 1.0;
    Time last_step_{};
    std::uint64_t serial_ = 0;  ///< Of the last job.
    std::uint64_t epoch_ = 1;
    bool up_ = true;
    bool other_model_ = false;
    EngineTotals totals_;
};

}  // namespace sluice::sim
