#pragma once

// The gateway of a simulation: admission, the choice of a worker, those who wait for one, and all
// requests that are under way. The same core as in earnest, with the event queue as its clock.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

#include "admission/admission.h"
#include "base/limits.h"
#include "dispatch/quarantine.h"
#include "dispatch/request.h"
#include "dispatch/resume_pacer.h"
#include "sim/event_queue.h"
#include "sim/fleet.h"
#include "sim/results.h"
#include "sim/sim_request.h"
#include "sim/workload.h"

namespace sluice::sim {

struct GatewayOptions {
    FleetOptions fleet;
    std::chrono::milliseconds deadline = std::chrono::minutes(10);
    std::size_t queue_requests = limits::kQueuedRequests;
    Duration queue_wait = std::chrono::seconds(limits::kQueueWaitSeconds);
    dispatch::Rules rules;
    /// Tokens a worker that may be computed again at once after losses.
    std::uint64_t resume_tokens = dispatch::ResumePacer::kTokensPerWorker;
};

class SimGateway {
public:
    SimGateway(EventQueue& queue, const GatewayOptions& options, Results& results);
    ~SimGateway();
    SimGateway(const SimGateway&) = delete;
    SimGateway& operator=(const SimGateway&) = delete;

    /// A request arrives now. `work` outlives it.
    void submit(const SimWork& work);

    /// Clients of `share` of the requests under way go, drawn by `seed`.
    void cancel(double share, std::uint64_t seed);
    /// A planned restart: the worker takes nothing more, what runs there goes on elsewhere, and then it
    /// is away for `downtime`.
    void restart(routing::WorkerIndex worker, Duration downtime);

    [[nodiscard]] std::size_t live() const { return live_.size(); }
    /// Leases, places in queues, turns and held blocks.
    [[nodiscard]] std::uint64_t in_use();
    [[nodiscard]] Fleet& fleet() { return fleet_; }
    [[nodiscard]] EventQueue& queue() { return queue_; }
    [[nodiscard]] const GatewayOptions& options() const { return options_; }

    // ---- For requests
    [[nodiscard]] std::expected<routing::Pick, routing::NoPick> pick(const SimRequest& request,
                                                                     routing::LegPhase phase);
    /// False if there is no place to wait in.
    [[nodiscard]] bool wait(SimRequest& request);
    /// A lease has ended.
    void on_room();
    /// A turn to compute again what was lost, or an inactive one: then the request lines up, and is
    /// called when its turn may have come.
    [[nodiscard]] dispatch::ResumePacer::Turn ask_turn(const SimRequest& request);
    void end_turn(dispatch::ResumePacer::Turn& turn);
    void finished(SimRequest& request);
    void quarantine(const SimWork& work);
    [[nodiscard]] JobId next_job() { return ++last_job_; }
    void count_token() { ++results_.timeline.at(queue_.now()).tokens; }

private:
    void enter(std::uint64_t number);
    void pump();
    void pump_later();
    void refuse_later(admission::Ticket ticket);
    void serve_all(std::deque<std::uint64_t>& line);
    void serve(std::deque<std::uint64_t>& line);

    EventQueue& queue_;
    GatewayOptions options_;
    Results& results_;
    dispatch::ResumePacer pacer_;
    dispatch::Quarantine quarantine_;
    admission::Admission admission_;
    admission::TenantIndex tenant_;
    Fleet fleet_;
    std::map<std::uint64_t, std::unique_ptr<SimRequest>> live_;  ///< In the order of arrival.
    std::unordered_map<admission::Ticket, std::uint64_t> by_ticket_;
    std::unordered_map<std::uint64_t, admission::Ticket> tickets_;
    std::deque<std::uint64_t> waiting_;   ///< For a worker.
    std::deque<std::uint64_t> resuming_;  ///< For their turn.
    std::uint64_t served_ = 0;  ///< Whose turn it is now: it keeps its place if it finds nothing.
    std::uint64_t last_number_ = 0;
    JobId last_job_ = 0;
    bool pump_posted_ = false;
    Time texts_done_{};  ///< The prompts that have come are turned into tokens by then.
};

}  // namespace sluice::sim
