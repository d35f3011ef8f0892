#pragma once

// Computes one step: the rows of all its sequences through the model, a pick for each that wants one,
// and what is known afterwards - of the sequences, of how long a step takes, of how good guesses are.
// Which sequences those are is the scheduler's to say, and what becomes of an end the engine's.

#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "engine/batch.h"
#include "engine/crew.h"
#include "engine/forward.h"
#include "engine/kv_pool.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"
#include "engine/speculator.h"
#include "engine/step_forecast.h"
#include "engine/thread_choice.h"

namespace sluice::engine {

struct EngineOptions;
struct StepReport;

class StepComputer {
public:
    /// They outlive it.
    struct Host {
        const EngineOptions& options;
        ThreadTeam& team;
        const ThreadChoice& threads;
        KvPool& pool;
        Scheduler& scheduler;
        Forward& forward;
        StepForecast& cost;
    };
    StepComputer(const Host& host, std::size_t vocabulary);

    /// `beside` is called with true before, and with false after, the time in which nothing is used but
    /// the pool's pages and the sequences of `parts`.
    void compute(std::span<const StepPart> parts, Speculator& speculator,
                 FunctionRef<void(bool)> beside);

    [[nodiscard]] std::uint64_t computed_tokens() const { return computed_tokens_; }
    [[nodiscard]] std::uint64_t sampled_tokens() const { return sampled_tokens_; }

private:
    void gather(std::span<const StepPart> parts, StepReport& report);
    void add_rows(const StepPart& part);
    void settle(std::span<const StepPart> parts, Speculator& speculator, StepReport& report);
    void on_logits(Sequence& sequence, std::size_t position, std::span<float> logits);
    void sample(Sequence& sequence, std::span<float> logits);

    Host host_;
    SamplerScratch scratch_;
    Batch batch_;
    std::vector<std::size_t> known_;  ///< Tokens of each part's sequence before the step.
    std::uint64_t computed_tokens_ = 0;
    std::uint64_t sampled_tokens_ = 0;
};

}  // namespace sluice::engine
