#pragma once

// One request from its arrival to its end, as gateway::Generation is in earnest: dispatch::Request says
// what happens when, and this carries it out on simulated engines. It ends exactly once and then holds
// nothing.

#include <cstdint>
#include <optional>

#include "dispatch/request.h"
#include "dispatch/resume_pacer.h"
#include "sim/results.h"
#include "sim/sim_engine.h"
#include "sim/workload.h"

namespace sluice::sim {

class SimGateway;

class SimRequest final : private JobObserver {
public:
    SimRequest(SimGateway& gateway, const SimWork& work, std::uint64_t number);
    ~SimRequest() override;
    SimRequest(const SimRequest&) = delete;
    SimRequest& operator=(const SimRequest&) = delete;

    /// Its turn has come: it is dispatched.
    void admitted() { advance(dispatch::Prepared{.has_images = work_.image_tokens > 0}); }
    void refuse() { advance(dispatch::Refused{}); }
    void worker_available() { advance(dispatch::WorkerAvailable{}); }
    void client_gone() { advance(dispatch::ClientGone{}); }
    /// Its worker takes no more requests: it goes on elsewhere.
    void leave(routing::WorkerIndex worker);

    [[nodiscard]] const SimWork& work() const { return work_; }
    [[nodiscard]] std::uint64_t number() const { return number_; }
    [[nodiscard]] const dispatch::Request& progress() const { return progress_; }
    [[nodiscard]] RequestResult result() const;
    /// Tokens whose keys and values the next leg needs.
    [[nodiscard]] std::uint64_t tokens() const;

private:
    void advance(const dispatch::Event& event);
    void perform(const dispatch::Action& action);
    void arm_timer();
    void on_timer();
    [[nodiscard]] bool take_turn();
    void seek();
    void start_leg();
    void end_leg();
    void release_hold();
    void break_leg(dispatch::LegFault fault);
    [[nodiscard]] Job job() const;

    void on_admitted(const CachedTokens& cached) override;
    void on_token() override;
    void on_handover() override;
    void on_pulled() override;
    void on_end() override;
    void on_fault(dispatch::LegFault fault) override;

    SimGateway& gateway_;
    const SimWork& work_;
    std::uint64_t number_;
    dispatch::Request progress_;
    EventQueue::EventId timer_ = 0;
    std::optional<Time> armed_for_;

    routing::Pick pick_;
    dispatch::ResumePacer::Turn turn_;
    std::optional<JobId> job_;  ///< Of the running leg.
    Time leg_began_{};
    Time last_news_{};
    bool leg_has_token_ = false;
    struct Hold {
        routing::WorkerIndex worker = 0;
        JobId job = 0;
    };
    std::optional<Hold> hold_;  ///< What a prefill worker keeps for it.

    bool ran_ = false;
    CachedTokens cached_;
    LatencySketch gaps_;
};

}  // namespace sluice::sim
