#pragma once

// What happens to one request, from the moment it is ready to be dispatched to its outcome: when a
// worker is sought, when a leg starts, starts over or goes on elsewhere, and when it is given up.
//
// Events and the time go in, actions come out, to be carried out in their order; there is no socket,
// timer or thread here, so that tests and the simulator can play any life of a request. The owner
// calls `on(Tick)` once `next_due` has come. A request ends exactly once, with kFinish as its last
// action; whatever happens after that is answered by nothing.
//
// Before the first byte reached the client a broken leg starts over elsewhere. After it, only a leg
// that can be resumed goes on; nothing else is ever sent twice. A request may cost so many losses
// without a new token in between, then it ends: it may be what takes the workers down.
//
// Its legs are encode (with images), then either one that does everything, or prefill and decode with
// a hand-over between: the prefill worker computes up to the first token and holds what it computed
// until the decode worker has it. Which of the two it is, is said with the worker that is found. After
// any loss the way starts again at prefill, so that what is resumed passes through the workers that
// are made for it; if hand-overs keep failing, one worker does it all.

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "base/request_class.h"
#include "routing/leg_phase.h"
#include "routing/registry.h"

namespace sluice::dispatch {

using Time = std::chrono::steady_clock::time_point;

using routing::LegPhase;

/// Where a request is, whatever legs it takes to get there.
enum class Phase : std::uint8_t {
    kArriving,  ///< Being parsed, admitted, rendered.
    kQueued,    ///< Waits for a worker.
    kPrefill,   ///< A worker has it (its images first); no token yet.
    kDecode,    ///< Tokens came. It may be waiting for a worker to go on with.
    kOver,
};

/// Why a leg broke, as far as it matters for what comes next.
enum class LegFault : std::uint8_t {
    kRefused,        ///< The request itself is wrong: everybody would say so.
    kFull,           ///< No room there.
    kMisconfigured,  ///< It does not take our key, or does not know what it should.
    kNotTaken,       ///< Nobody took the request: not reached, not ready, gone before it said so.
    kUnavailable,    ///< Gone, cut off.
    kStalled,        ///< Silent for too long.
    kBroken,         ///< Not what its protocol says, or an error of its own.
    kBlocksLost,     ///< What prefill held can't be had, and is too much to compute in decode.
};

/// Why a request ends without its answer; each has its own error for the client.
enum class Failure : std::uint8_t {
    kNone,
    kRefused,        ///< The owner, or the leg's own error, says why.
    kQueueFull,      ///< The gateway's queue, or the workers'.
    kDeadline,       ///< In `Request::outcome()` stands in which phase.
    kWorkersLost,    ///< The budget of losses is used up.
    kNoWorker,       ///< The worker was lost, and no other came up in time.
    kNoOtherWorker,  ///< It may not go back to where it failed, and there is no other.
    kOtherModel,     ///< The workers that are left serve another model.
    kCutOff,         ///< The answer broke after its first byte and can't go on.
    kStopping,       ///< The service stops.
};

/// How legs on a pool may be repeated.
struct Rules {
    /// A broken answer goes on elsewhere, exactly where it stopped.
    bool resumable = true;
    routing::Tried::Rule tried = routing::Tried::Rule::kAvoid;
    /// Losses in a row, without a new token in between, that end a request.
    std::uint32_t losses_max = 2;
    /// Workers in a row that may be gone before they took the request: it didn't kill them, so that is
    /// no loss of its own. Several die at once where a machine does, or a rolling restart is quick.
    std::uint32_t not_taken_max = 8;
    /// How long a request that lost its worker waits for another.
    std::chrono::milliseconds patience{30'000};
    /// Hand-overs that may fail in a row; then one worker does it all.
    std::uint32_t handovers_max = 2;
    /// Longest time without a sign of life, by what the leg does; 0: whoever runs it sees to that.
    std::chrono::milliseconds encode_time{30'000};
    std::chrono::milliseconds handover_time{10'000};  ///< Of decode, up to its first token.
    std::chrono::milliseconds stall_time{0};          ///< Of everything else.
};

// ---- Events ---------------------------------------------------------------------------------------

/// Admitted and rendered.
struct Prepared {
    bool has_images = false;
};
/// Answers to kSeek: a worker (its lease is the owner's), or none now.
struct WorkerFound {
    routing::PoolIndex pool = 0;
    routing::WorkerIndex worker = 0;
    Rules rules;
    /// What it is to do: `wanted()`, or kFull instead of kPrefill where there is no hand-over.
    LegPhase leg = LegPhase::kFull;
};
struct NoWorker {
    routing::NoPick why = routing::NoPick::kNoneReady;
};
/// It lost its worker, as others did, and has to wait for its turn: WorkerAvailable says when.
struct Paced {};
/// There may be a worker now.
struct WorkerAvailable {};
/// Answer to kWait: there is no place to wait in.
struct QueueFull {};
/// The client was sent the first byte of its answer.
struct AnswerBegun {};
/// New tokens came together.
struct TokensCame {
    std::uint32_t tokens = 1;
};
/// A sign of life without tokens: something was computed.
struct Progressed {};
/// The images are encoded.
struct Encoded {};
/// The prefill leg is over: its token came, and its worker holds what decode needs.
struct HandedOver {};
/// The answer is complete.
struct LegEnded {};
struct LegFailed {
    LegFault fault = LegFault::kUnavailable;
};
/// The gateway itself finds that the request can't be served: wrong, too long for the worker, over a
/// limit. The owner knows what to tell the client.
struct Refused {};
/// The worker that was found serves another model than the one whose tokens came.
struct CannotResume {};
struct ClientGone {};
/// What becomes of the legs that run where no more requests are taken.
enum class Running : std::uint8_t {
    kFinish,
    kEvacuate,  ///< They go elsewhere where they can.
};
/// The pool takes no more requests.
struct PoolClosed {
    routing::PoolIndex pool = 0;
    Running running = Running::kFinish;
};
/// The worker takes no more requests.
struct WorkerClosed {
    routing::WorkerIndex worker = 0;
    Running running = Running::kFinish;
};
/// The service stops.
struct Abandoned {};
struct Tick {};

using Event =
    std::variant<Prepared, WorkerFound, NoWorker, Paced, WorkerAvailable, QueueFull, AnswerBegun,
                 TokensCame, Progressed, Encoded, HandedOver, LegEnded, LegFailed, Refused,
                 CannotResume, ClientGone, PoolClosed, WorkerClosed, Abandoned, Tick>;

// ---- Actions --------------------------------------------------------------------------------------

struct Action {
    enum class Kind : std::uint8_t {
        kSeek,       ///< Choose a pool and a worker for `wanted()`, not from `tried()`; report it.
        kWait,       ///< Wait in the queue; report WorkerAvailable, or QueueFull.
        kStartLeg,   ///< On the worker that was found, from the beginning.
        kResumeLeg,  ///< The same, after the tokens that came.
        kEndLeg,     ///< Let go of the leg and its lease.
        kBlame,      ///< Count the worker's silence against it. The leg still runs.
        kRelease,    ///< What the prefill worker holds is needed no more.
        kFail,       ///< Tell the client of `failure`.
        kFinish,     ///< It is over, with `outcome()`. The last action.
    };
    Kind kind;
    Failure failure = Failure::kNone;
    bool operator==(const Action&) const = default;
};

class Actions {
public:
    Actions() = default;
    Actions(std::initializer_list<Action> actions);
    void add(Action action);

    [[nodiscard]] auto begin() const { return actions_.begin(); }
    [[nodiscard]] auto end() const { return actions_.begin() + size_; }
    [[nodiscard]] std::size_t size() const { return size_; }

private:
    std::array<Action, 5> actions_{};  ///< As many as may follow from one event.
    std::uint8_t size_ = 0;
};

// ---- The request ----------------------------------------------------------------------------------

/// When things happened; unset if they did not.
struct Marks {
    Time arrival;
    std::optional<Time> dispatched;  ///< The first leg started.
    std::optional<Time> first_token;
    std::optional<Time> last_token;
    std::optional<Time> ended;
};

class Request {
public:
    Request(Time arrival, std::chrono::milliseconds deadline);

    [[nodiscard]] Actions on(const Event& event, Time now);

    /// When `on(Tick)` may have something to do, if nothing happens before.
    [[nodiscard]] Time next_due() const;

    [[nodiscard]] Phase phase() const { return phase_; }
    [[nodiscard]] bool over() const { return phase_ == Phase::kOver; }
    /// Of the end; kOk before it.
    [[nodiscard]] Outcome outcome() const { return outcome_; }
    [[nodiscard]] const Marks& marks() const { return marks_; }
    [[nodiscard]] std::uint64_t tokens() const { return tokens_; }
    [[nodiscard]] std::uint32_t retries() const { return retries_; }
    [[nodiscard]] std::uint32_t resumes() const { return resumes_; }
    /// Losses since the last new token.
    [[nodiscard]] std::uint32_t losses() const { return losses_; }
    /// What a search must avoid.
    [[nodiscard]] const routing::Tried& tried() const { return tried_; }
    /// Tokens came, so that only the same model can go on.
    [[nodiscard]] bool must_resume() const { return tokens_ > 0; }
    /// What the next leg is to do.
    [[nodiscard]] LegPhase wanted() const;
    /// What the running leg does, or the last one.
    [[nodiscard]] LegPhase leg() const { return leg_; }
    /// A prefill worker holds what decode needs.
    [[nodiscard]] bool held() const { return held_; }
    /// Hand-overs that came to nothing.
    [[nodiscard]] std::uint32_t fallbacks() const { return fallbacks_; }
    /// The next leg computes again what a lost one knew.
    [[nodiscard]] bool after_loss() const { return after_loss_; }

private:
    enum class Stage : std::uint8_t { kIdle, kSeeking, kWaiting, kRunning };

    [[nodiscard]] Actions take(const Prepared&, Time now);
    [[nodiscard]] Actions take(const WorkerFound& found, Time now);
    [[nodiscard]] Actions take(const NoWorker& none, Time now);
    [[nodiscard]] Actions take(const Paced&, Time now);
    [[nodiscard]] Actions take(const WorkerAvailable&, Time now);
    [[nodiscard]] Actions take(const QueueFull&, Time now);
    [[nodiscard]] Actions take(const AnswerBegun&, Time now);
    [[nodiscard]] Actions take(const TokensCame& came, Time now);
    [[nodiscard]] Actions take(const Progressed&, Time now);
    [[nodiscard]] Actions take(const Encoded&, Time now);
    [[nodiscard]] Actions take(const HandedOver&, Time now);
    [[nodiscard]] Actions take(const LegEnded&, Time now);
    [[nodiscard]] Actions take(const LegFailed& failed, Time now);
    [[nodiscard]] Actions take(const Refused&, Time now);
    [[nodiscard]] Actions take(const CannotResume&, Time now);
    [[nodiscard]] Actions take(const ClientGone&, Time now);
    [[nodiscard]] Actions take(const PoolClosed& closed, Time now);
    [[nodiscard]] Actions take(const WorkerClosed& closed, Time now);
    [[nodiscard]] Actions take(const Abandoned&, Time now);
    [[nodiscard]] Actions take(const Tick&, Time now);

    [[nodiscard]] Actions lose_leg(LegFault fault, Time now);
    [[nodiscard]] Actions leave(Running running, Time now);
    /// Ends the leg, and what is held with it, and seeks the next worker.
    [[nodiscard]] Actions start_over();
    [[nodiscard]] Actions go_on();
    [[nodiscard]] Actions fail(Failure failure, Outcome outcome, Time now);
    [[nodiscard]] Actions end(Outcome outcome, Time now);
    void add_release(Actions& actions);
    [[nodiscard]] bool count_loss();
    void expect_life(Time now);
    [[nodiscard]] Outcome timeout() const;

    Marks marks_;
    Time deadline_;
    std::optional<Time> found_by_;  ///< After a loss: when another worker must be found.
    std::optional<Time> alive_by_;  ///< When the running leg must have shown life.
    Rules rules_;
    routing::Tried tried_;
    routing::PoolIndex pool_ = 0;
    routing::WorkerIndex worker_ = 0;
    LegFault last_fault_ = LegFault::kUnavailable;
    std::uint64_t tokens_ = 0;
    std::uint32_t losses_ = 0;
    std::uint32_t not_taken_ = 0;  ///< In a row, as losses are.
    /// Since the last token of a leg that decodes: prefill's first token proves nothing about decode.
    std::uint32_t decode_losses_ = 0;
    std::uint32_t failed_handovers_ = 0;  ///< In a row.
    std::uint32_t fallbacks_ = 0;
    std::uint32_t retries_ = 0;
    std::uint32_t resumes_ = 0;
    Outcome outcome_ = Outcome::kOk;
    Phase phase_ = Phase::kArriving;
    Stage stage_ = Stage::kIdle;
    LegPhase leg_ = LegPhase::kFull;
    bool begun_ = false;  ///< The client has seen a byte of the answer.
    bool to_encode_ = false;
    bool held_ = false;
    bool after_loss_ = false;
    bool paced_ = false;
};

}  // namespace sluice::dispatch
