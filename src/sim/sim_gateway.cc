#include "sim/sim_gateway.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "trace/random.h"

namespace sluice::sim {
namespace {

using routing::LegPhase;
using routing::NoPick;

admission::AdmissionOptions admission_options(const GatewayOptions& options) {
    return {.bounds = {.requests = options.queue_requests,
                       .bytes = SIZE_MAX,
                       .of_tenant = options.queue_requests},
            .wait_max = options.queue_wait,
            .tenants = {}};
}

}  // namespace

SimGateway::SimGateway(EventQueue& queue, const GatewayOptions& options, Results& results)
    : queue_(queue),
      options_(options),
      results_(results),
      pacer_(options.resume_tokens),
      admission_(admission_options(options)),
      tenant_(*admission_.tenant("simulation")),
      fleet_(queue, options.fleet, [this] {
          serve_all(resuming_);
          serve_all(waiting_);
      }) {}

SimGateway::~SimGateway() = default;

// ---- Arrival and end ------------------------------------------------------------------------------

void SimGateway::submit(const SimWork& work) {
    const Time now = queue_.now();
    ++results_.timeline.at(now).arrived;
    const std::uint64_t number = ++last_number_;
    live_.emplace(number, std::make_unique<SimRequest>(*this, work, number));
    // One after the other: the gateway has one thread for it.
    const double text_us = options_.fleet.engine.request_token_us * work.prompt_tokens;
    texts_done_ = std::max(texts_done_, now) + from_microseconds(text_us);
    if (texts_done_ <= now) return enter(number);
    queue_.at(texts_done_, [this, number] { enter(number); });
}

void SimGateway::enter(std::uint64_t number) {
    const auto at = live_.find(number);
    if (at == live_.end()) return;
    const Time now = queue_.now();
    SimRequest& request = *at->second;
    const SimWork& work = request.work();
    if (quarantine_.holds(work.chain->back(), now)) return request.refuse();
    const auto admitted = admission_.submit({.tenant = tenant_,
                                             .prompt_tokens = work.prompt_tokens,
                                             .max_tokens = work.answer_tokens,
                                             .deadline = now + options_.deadline},
                                            now);
    if (!admitted) return request.refuse();
    tickets_.emplace(number, admitted->ticket);
    by_ticket_.emplace(admitted->ticket, number);
    for (const admission::Ticket gone : admitted->gave_way) refuse_later(gone);
    pump();
}

void SimGateway::refuse_later(admission::Ticket ticket) {
    const std::uint64_t number = by_ticket_.at(ticket);
    queue_.after(Duration::zero(), [this, number] {
        if (const auto at = live_.find(number); at != live_.end()) at->second->refuse();
    });
}

void SimGateway::pump_later() {
    if (std::exchange(pump_posted_, true)) return;
    queue_.after(Duration::zero(), [this] {
        pump_posted_ = false;
        pump();
    });
}

void SimGateway::pump() {
    while (admission_.running() < fleet_.room()) {
        const auto ticket = admission_.next(queue_.now());
        if (!ticket) return;
        live_.at(by_ticket_.at(*ticket))->admitted();
    }
}

void SimGateway::finished(SimRequest& request) {
    const Time now = queue_.now();
    const std::uint64_t number = request.number();
    const RequestResult result = request.result();
    const bool complete = result.outcome == Outcome::kOk;
    results_.add(result);
    ++(complete ? results_.timeline.at(now).completed : results_.timeline.at(now).failed);
    std::erase(waiting_, number);
    std::erase(resuming_, number);
    if (const auto ticket = tickets_.extract(number); !ticket.empty()) {
        by_ticket_.erase(ticket.mapped());
        admission_.finish(ticket.mapped(),
                          {.prompt_tokens = result.prompt_tokens,
                           .completion_tokens = result.answer_tokens,
                           .complete = complete},
                          now);
        pump_later();
    }
    // Later: it is still at work.
    queue_.after(
        Duration::zero(),
        [request = std::shared_ptr<SimRequest>(std::move(live_.extract(number).mapped()))] {});
}

void SimGateway::quarantine(const SimWork& work) {
    quarantine_.add(work.chain->back(), queue_.now());
}

// ---- The choice of a worker -----------------------------------------------------------------------

std::expected<routing::Pick, NoPick> SimGateway::pick(const SimRequest& request, LegPhase phase) {
    const routing::Demand demand{.pool = 0,
                                 .phase = phase,
                                 .tokens = request.tokens(),
                                 .image_tokens = request.work().image_tokens,
                                 .blocks = *request.work().chain};
    return fleet_.registry().pick(demand, request.progress().tried(), queue_.now());
}

bool SimGateway::wait(SimRequest& request) {
    const std::uint64_t number = request.number();
    const bool first = number == served_ || request.progress().must_resume();
    if (!first && waiting_.size() >= options_.queue_requests) return false;
    first ? waiting_.push_front(number) : waiting_.push_back(number);
    return true;
}

void SimGateway::on_room() {
    if (!waiting_.empty()) queue_.after(Duration::zero(), [this] { serve(waiting_); });
}

dispatch::ResumePacer::Turn SimGateway::ask_turn(const SimRequest& request) {
    const bool called = request.number() == served_;
    if (called || resuming_.empty()) {
        const std::uint32_t ready = fleet_.registry().ready_in(0, queue_.now());
        if (auto turn = pacer_.admit(0, request.tokens(), ready)) return std::move(*turn);
    }
    called ? resuming_.push_front(request.number()) : resuming_.push_back(request.number());
    return {};
}

void SimGateway::end_turn(dispatch::ResumePacer::Turn& turn) {
    if (!turn.active()) return;
    turn.end();
    if (!resuming_.empty()) queue_.after(Duration::zero(), [this] { serve_all(resuming_); });
}

void SimGateway::serve(std::deque<std::uint64_t>& line) {
    if (line.empty()) return;
    served_ = line.front();
    line.pop_front();
    if (const auto at = live_.find(served_); at != live_.end()) at->second->worker_available();
    served_ = 0;
}

// Until one finds nothing: those behind it would not, either.
void SimGateway::serve_all(std::deque<std::uint64_t>& line) {
    for (std::size_t left = line.size(); left > 0; --left) {
        const std::size_t before = line.size();
        serve(line);
        if (line.size() >= before) return;
    }
}

// ---- What goes wrong ------------------------------------------------------------------------------

void SimGateway::cancel(double share, std::uint64_t seed) {
    trace::Random random(seed);
    std::vector<std::uint64_t> gone;
    for (const auto& [number, request] : live_)
        if (random.uniform() < share) gone.push_back(number);
    for (const std::uint64_t number : gone)
        if (const auto at = live_.find(number); at != live_.end()) at->second->client_gone();
}

void SimGateway::restart(routing::WorkerIndex worker, Duration downtime) {
    fleet_.registry().drain(worker, true);
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, request] : live_) numbers.push_back(number);
    for (const std::uint64_t number : numbers)
        if (const auto at = live_.find(number); at != live_.end()) at->second->leave(worker);
    fleet_.restart_when_empty(worker, downtime);
}

std::uint64_t SimGateway::in_use() {
    std::uint64_t count = fleet_.registry().leases() + admission_.running() + admission_.waiting() +
                          waiting_.size() + resuming_.size() + pacer_.tokens(0) + tickets_.size();
    for (routing::WorkerIndex worker = 0; worker < fleet_.size(); ++worker) {
        SimEngine& engine = fleet_.engine(worker);
        count += engine.running() + engine.waiting() + engine.holds() + engine.cache().held();
    }
    return count;
}

}  // namespace sluice::sim
