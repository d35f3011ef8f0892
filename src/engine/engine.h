#pragma once

// The native engine: an in-process API without sockets. Requests go in, outputs come back through
// each request's sink after every step. One thread computes; `submit` and `abort` may be called from
// any thread. What a request needs before its first step is done by its caller: checks, the names of
// its blocks and, while a step computes, its place and its cached prefix in the next one. Aborts take
// effect between two steps.
//
// The tokens of a request depend on its input, its parameters, its seed and the model alone
// (docs/exactness.md).

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/fault_points.h"
#include "base/limits.h"
#include "base/thread_team.h"
#include "engine/block_desk.h"
#include "engine/forward.h"
#include "engine/kv_pool.h"
#include "engine/model.h"
#include "engine/request.h"
#include "engine/scheduler.h"
#include "engine/speculator.h"
#include "engine/stats_board.h"
#include "engine/step_computer.h"
#include "engine/step_forecast.h"
#include "engine/thread_choice.h"

namespace sluice::engine {

/// What one step did; given to the observer on the engine's thread.
struct StepReport {
    std::size_t prefill_tokens =
        0;  ///< Computed without sampling after them, or as part of a prompt.
    std::size_t decode_tokens = 0;  ///< Computed one a sequence, each with a sample after it.
    std::size_t sampled_tokens = 0;
    std::size_t drafted = 0;      ///< Guesses that were checked.
    std::size_t accepted = 0;     ///< Guesses that the sampler picked, too.
    std::size_t mtp_drafted = 0;  ///< Those of `drafted` that the MTP head guessed.
    std::size_t mtp_accepted = 0;
    std::chrono::nanoseconds duration{};
};

/// Instead of a number of threads: what is fastest for each size of step (thread_choice.h).
inline constexpr std::size_t kAutoThreads = 0;

struct EngineOptions {
    std::size_t threads = 1;
    std::size_t pool_tokens = 131'072;
    std::size_t running_max = limits::kEngineRunning;
    std::size_t waiting_max = limits::kEngineWaiting;
    std::size_t step_tokens = 512;
    std::size_t prefill_chunk = 512;  ///< Most prompt tokens of one sequence in a step.
    /// The longest that a step may be predicted to take while some sequence decodes.
    std::chrono::milliseconds step_time{50};
    Speculation speculation = Speculation::kOff;
    /// For tests: takes guesses for picks, unchecked. What compares tokens must notice.
    bool trust_guesses = false;
    FaultPoints faults;  ///< Planted on purpose; none in earnest.
    /// If not empty, part of the names of blocks: those of other builds are not found.
    std::string kv_build;
    /// Hears of the pool's names, on whatever thread works on it; it outlives the engine.
    BlockObserver* block_observer = nullptr;
    std::function<void(const StepReport&)> on_step;
};

/// What an engine takes, in bytes.
struct MemoryUse {
    std::size_t embedding = 0;    ///< Of the mapped checkpoint; shared between processes.
    std::size_t weights = 0;      ///< Packed; shared where they lie in a file.
    std::size_t kv_pool = 0;      ///< When every block has been used, the MTP head's included.
    std::size_t activations = 0;  ///< Of the largest step.

    [[nodiscard]] std::size_t total() const { return embedding + weights + kv_pool + activations; }
};

class Engine {
public:
    static constexpr std::size_t kBlockTokens = 64;

    /// Tests the machine's arithmetic and allocates everything a step needs. `kOutOfRange` names the
    /// option that makes no sense; `kInternal`: results would not be exact here.
    [[nodiscard]] static Result<std::unique_ptr<Engine>> create(std::shared_ptr<const Model> model,
                                                                EngineOptions options);
    /// What `create` with these options takes, without taking it; Model::outline is enough. The counts
    /// are those of the constructors themselves.
    [[nodiscard]] static MemoryUse memory_use(const std::shared_ptr<const Model>& model,
                                              const EngineOptions& options);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// What `submit` refuses whatever else runs, with its error.
    [[nodiscard]] Result<void> check(const Request& request) const;

    /// `kExhausted` if too many requests are there for another one at this moment.
    [[nodiscard]] Result<void> check_room() const;

    /// Checks and queues a request. Errors name the field; `kExhausted` if too many wait. The sink
    /// is called until it got an output with `finish`, and never after.
    [[nodiscard]] Result<void> submit(Request request, OutputSink sink);

    /// Ends a request before the next step; its sink gets kAborted. No effect if it is not there.
    void abort(std::string id);

    /// Work on the pool's blocks, done between two steps or beside one that computes, in the order of
    /// these calls and of `submit`; it must be short, and not call the engine. Not done after `stop`.
    void with_blocks(std::function<void(BlockDesk&)> work);

    /// Computes on a thread of its own until `stop`.
    void start();
    /// Ends the thread after the current step; live requests get kAborted.
    void stop();

    /// One step on the calling thread, for tests and batch work; not with `start`.
    /// False if there was nothing to do.
    bool step();

    [[nodiscard]] EngineStats stats() const;
    /// How long it would take to compute `count` tokens behind `first` others, and nothing else.
    [[nodiscard]] std::chrono::nanoseconds prefill_time(std::size_t first, std::size_t count) const;
    [[nodiscard]] const Model& model() const { return *model_; }
    [[nodiscard]] const EngineOptions& options() const { return options_; }
    [[nodiscard]] const ThreadChoice& threads() const { return threads_; }
    /// What the keys of this engine's blocks are made from, but for the salt.
    [[nodiscard]] const kv::BlockKeyRoot& key_root() const { return key_root_; }
    /// Most tokens of prompt and output together that one request may have.
    [[nodiscard]] std::size_t context_tokens() const;

private:
    struct Command {
        SequencePtr sequence{};                    ///< Submit if set,
        std::function<void(BlockDesk&)> blocks{};  ///< else this work if set,
        std::string id{};                          ///< else abort this one.
    };

    Engine(std::shared_ptr<const Model> model, EngineOptions options, KvPool pool);
    void choose_threads();
    [[nodiscard]] Result<void> room_under_lock() const;
    void add_command(Command command);
    void take_commands();
    /// Queues what was submitted, on the caller's thread, if a step computes just now.
    void prepare_next_step();
    void set_computing(bool computing);
    void emit(std::span<const StepPart> parts);
    void finish(std::string_view id, Finish how);
    [[nodiscard]] std::shared_ptr<const HeldSequence> hold_blocks(Sequence& sequence);
    void publish_stats();
    void plant_faults();
    void run();

    std::shared_ptr<const Model> model_;
    EngineOptions options_;
    kv::BlockKeyRoot key_root_;
    std::vector<TokenId> end_tokens_;
    ThreadTeam team_;
    ThreadChoice threads_;
    KvPool pool_;
    StepForecast cost_;
    StatsBoard board_;
    Scheduler scheduler_;
    Forward forward_;
    std::unique_ptr<Speculator> speculator_;
    StepComputer computer_;
    std::uint64_t arrivals_ = 0;
    std::uint64_t steps_ = 0;

    /// Held while the scheduler is used beside a step that computes. The engine's thread uses it
    /// outside of that time alone, so it needs no lock then.
    std::mutex preparing_;
    bool computing_ = false;      ///< Under preparing_.
    std::uint64_t prepared_ = 0;  ///< Under preparing_.

    /// Taken after preparing_ where both are.
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<Command> commands_;
    std::vector<Command> taken_;              ///< The engine's thread's half of commands_.
    std::vector<Command> prepared_commands_;  ///< Likewise, of who prepares: under preparing_.
    std::unordered_set<std::string> live_;    ///< Ids from submit to finish.
    bool stopping_ = false;
    std::thread thread_;
    BlockDesk desk_;  ///< Used as the scheduler is. Last, so that it ends before what it wakes.
};

}  // namespace sluice::engine
