#pragma once

// One request for tokens from its arrival to its end: admitted, steered to a pool, prepared for it,
// queued, given to a worker, and reported. What happens when is dispatch::Request's to say; this
// carries it out. It ends exactly once and then holds nothing: no worker, no timer, no place in the
// queue.
//
// Belongs to the event loop's thread.

#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/quarantine.h"
#include "dispatch/request.h"
#include "gateway/admission_gate.h"
#include "gateway/gateway_probe.h"
#include "gateway/inbound_request.h"
#include "gateway/leg_runner.h"
#include "gateway/pool_set.h"
#include "gateway/request_report.h"
#include "gateway/resume_queue.h"
#include "gateway/steering.h"
#include "net/event_loop.h"

namespace sluice::gateway {

/// What all requests share.
struct GenerationServices {
    net::EventLoop& loop;
    PoolSet& pools;
    GatewayProbe& probe;
    ResumeQueue& resumes;
    dispatch::Quarantine& quarantine;
    Steering& steering;
    AdmissionGate* admission = nullptr;         ///< Without one everybody is admitted.
    std::chrono::milliseconds headers_after{};  ///< Then a stream that waits gets its head.
    std::optional<std::uint64_t> move_every;    ///< FaultPoints::move_every
    std::vector<RequestObserver*> observers;
    /// Runs `work` beside the event loop and `then` on it; false if there is too much to do.
    std::function<bool(std::function<void()> work, std::function<void()> then)> beside_loop;
    /// Puts a request into the queue of those that wait for a worker; false if it is full.
    std::function<bool(Generation&)> wait_for_worker;
    /// A lease on one of the pool's workers has ended.
    std::function<void(Pool&)> on_room;
    /// Called once, as the very last thing.
    std::function<void(Generation&)> on_done;
};

class Generation final : public std::enable_shared_from_this<Generation>, private LegObserver {
public:
    Generation(GenerationServices& services, InboundRequest request);
    ~Generation();

    /// Watches the client and the deadline from now on, and sets out.
    void start();
    /// A copy of `original` for `pool`: like it, but for whom it answers.
    void start_copy(const Generation& original, Pool& pool);

    /// There may be a worker now.
    void worker_available();
    /// The pool takes no more requests: what waits for it goes where the plan says now.
    void pool_closed(routing::PoolIndex pool, dispatch::Running running);
    /// The worker takes no more requests; what it has of this one goes on elsewhere.
    void worker_closed(routing::WorkerIndex worker);
    /// Whether what it has so far could be continued by a worker of `pool`, bit for bit.
    [[nodiscard]] bool can_go_on_in(const Pool& pool) const;
    /// The service stops.
    void abandon();
    /// Keeps the answer for the report. Before the first leg.
    void collect();

    [[nodiscard]] const std::string& rid() const { return rid_; }
    [[nodiscard]] const InboundRequest& request() const { return request_; }
    [[nodiscard]] const dispatch::Request& progress() const { return progress_; }
    /// That was chosen last; nullptr before.
    [[nodiscard]] Pool* pool() const { return pool_; }
    /// What was prepared for `pool()`; nullptr before, and for pass-through pools.
    [[nodiscard]] const std::shared_ptr<const PreparedRequest>& prepared() const {
        return prepared_;
    }
    /// LegRunner::block_keys
    [[nodiscard]] std::span<const kv::BlockKey> block_keys() const {
        return runner_ ? runner_->block_keys() : std::span<const kv::BlockKey>();
    }
    /// As far as it is known now; complete once the request is over.
    [[nodiscard]] RequestReport report() const;

private:
    void admit();
    void on_verdict(const AdmissionVerdict& verdict);
    void refuse(const protocol::ApiError& error);

    [[nodiscard]] std::expected<Pool*, protocol::ApiError> choose() const;
    [[nodiscard]] std::expected<Pool*, protocol::ApiError> pinned() const;
    void turn_to(Pool& pool, std::function<void()> then);
    void on_prepared(Pool& pool, const Prepared& prepared, const std::function<void()>& then);
    void first_pool();

    void advance(const dispatch::Event& event);
    void perform(const dispatch::Action& action);
    [[nodiscard]] bool has_other_worker() const;
    void arm_timer();
    void seek();
    void pick();
    /// False if it has to wait: what a lost worker did is computed again little by little.
    [[nodiscard]] bool take_turn();
    void start_leg();
    void end_leg();
    void blame();
    [[nodiscard]] std::optional<std::uint64_t> prompt_hash() const;
    [[nodiscard]] bool is_quarantined() const;
    void fail(dispatch::Failure failure);
    [[nodiscard]] protocol::ApiError error_of(dispatch::Failure failure) const;
    void tell_client(const protocol::ApiError& error);
    void finish();

    void on_answer_begun() override;
    void on_tokens(std::uint32_t tokens) override;
    void on_leg_first_token(dispatch::Time now);
    void move_on_purpose();
    void on_progress(std::uint64_t computed) override;
    void on_handed_over() override;
    void on_answered() override;
    void on_leg_failed(dispatch::LegFault fault, const Error& error) override;

    [[nodiscard]] std::chrono::nanoseconds since_arrival(dispatch::Time at) const;

    GenerationServices& services_;
    InboundRequest request_;
    std::string rid_;
    std::chrono::system_clock::time_point wall_time_;
    dispatch::Request progress_;
    net::Timer timer_;
    std::optional<dispatch::Time> armed_for_;

    std::unique_ptr<AdmissionTicket> ticket_;
    Pool* pool_ = nullptr;
    Pool* copy_to_ = nullptr;       ///< Of a copy: the one pool it may go to.
    const void* recipe_ = nullptr;  ///< Of `prepared_`.
    std::shared_ptr<const PreparedRequest> prepared_;
    std::unique_ptr<LegRunner> runner_;
    std::optional<PoolMeter> meter_;
    Assignment assignment_;
    dispatch::ResumePacer::Turn turn_;
    bool collecting_ = false;

    std::vector<LegReport> legs_;
    LatencySketch gaps_;
    std::optional<protocol::ApiError>
        refusal_;  ///< For Failure::kRefused, where the gateway refuses.
    std::optional<std::chrono::seconds> retry_after_;
    std::string last_error_;  ///< Of the last leg that broke.
    std::string told_code_;   ///< What the client was told.
    int told_status_ = 0;
};

}  // namespace sluice::gateway
