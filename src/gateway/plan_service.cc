#include "gateway/plan_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "gateway/plan_endpoints.h"

namespace sluice::gateway {
namespace {

using Running = dispatch::PoolClosed::Running;

/// How often pools are looked at; guards every fifth time.
constexpr std::chrono::milliseconds kTurn{200};
constexpr int kTurnsOfGuards = 5;
/// Log-probabilities of two engines that compute alike are closer than this, in nats.
constexpr double kLogprobTolerance = 0.05;

traffic::State first_state(const PlanStore& store, const PlanServiceOptions& options,
                           traffic::Now now) {
    traffic::Change start = traffic::resume(store.load(), options.plan, options.pools, now);
    if (const auto saved = store.save(start.state); !saved) {
        // A rollback could not be kept either.
        start.state.latched = true;
        start.state.reason = "the state can't be written: " + saved.error().to_string();
        start.state.reason_kind = "unwritable";
        start.entry.why = start.state.reason;
        start.entry.latched = true;
    }
    store.note(start.entry);
    if (start.state.latched) log::warn("plan: rolled back: {}", start.state.reason);
    return std::move(start.state);
}

/// Sends each request where the plan says.
class PlanSteering final : public Steering {
public:
    PlanSteering(const traffic::Controller& controller, PoolSet& pools)
        : controller_(controller), pools_(pools) {}

    [[nodiscard]] Pool* choose(const InboundRequest& request, Pool* current) override {
        const auto now = std::chrono::steady_clock::now();
        if (current != nullptr && controller_.open(current->name(), now)) return current;
        Pool* const stable = pools_.find(controller_.plan().stable);
        Pool* const chosen = pools_.find(controller_.choose(request.conversation, now));
        // A candidate that can't answer now is no reason to wait.
        return chosen != nullptr && pools_.any_ready(*chosen) ? chosen : stable;
    }

    [[nodiscard]] bool serves(std::string_view model) const override {
        const traffic::Plan& plan = controller_.plan();
        return std::ranges::any_of(pools_, [&](const auto& pool) {
            const bool used = pool->name() == plan.stable || plan.splits_to(pool->name());
            return used && (model.empty() || pool->model().empty() || pool->model() == model);
        });
    }

private:
    const traffic::Controller& controller_;
    PoolSet& pools_;
};

/// Nothing of it would say anything about a pool.
bool is_nobodys(const RequestReport& report) {
    return report.legs.empty() || report.outcome == Outcome::kClientGone ||
           report.outcome == Outcome::kRejected;
}

}  // namespace

PlanService::PlanService(net::EventLoop& loop, PlanServiceOptions options)
    : loop_(loop),
      options_(std::move(options)),
      store_(options_.state_folder),
      controller_(first_state(store_, options_, now()), now()),
      client_(loop) {}

traffic::Now PlanService::now() {
    return {std::chrono::steady_clock::now(), std::chrono::system_clock::now()};
}

std::unique_ptr<Steering> PlanService::make_steering(PoolSet& pools) {
    pools_ = &pools;
    return std::make_unique<PlanSteering>(controller_, pools);
}

void PlanService::attach(Gateway& gateway) {
    gateway_ = &gateway;
    probe_.emplace(gateway.metrics());
    probe_->latched(controller_.latched());
    add_plan_endpoints(gateway, *this);
    watch();
}

void PlanService::on_gateway_end() {
    timer_.cancel();
    scorers_.clear();
    gateway_ = nullptr;
    pools_ = nullptr;
}

std::vector<traffic::PoolFacts> PlanService::facts() const {
    std::vector<traffic::PoolFacts> facts;
    for (const auto& pool : *pools_) {
        traffic::PoolFacts fact{.name = pool->name(),
                                .ready_workers = pools_->registry().ready_in(pool->index()),
                                .capacity = pools_->registry().capacity_of(pool->index()),
                                .running = pools_->registry().leases_in(pool->index())};
        // A native engine says itself how many it runs at a time.
        std::uint64_t told = 0;
        for (const WorkerView& worker : pool->workers())
            if (worker.state == "ready" && worker.versions) told += worker.versions->max_running;
        if (*fact.capacity == 0) fact.capacity = told;
        if (*fact.capacity == 0) fact.capacity.reset();
        facts.push_back(std::move(fact));
    }
    return facts;
}

// ---- Changes --------------------------------------------------------------------------------------

void PlanService::adopt(const traffic::Change& change) {
    controller_.adopt(change.state, now());
    store_.note(change.entry);
    probe_->latched(controller_.latched());
    gateway_->set_stable(*pools_->find(controller_.plan().stable));
    gateway_->replan();
}

Result<void> PlanService::apply(traffic::Plan plan, const Operator& by) {
    const bool copies_end = plan.shadows != controller_.plan().shadows;
    const auto change =
        controller_.apply(std::move(plan), facts(), by.force, by.who, by.why, now());
    if (!change) return std::unexpected(change.error());
    if (auto saved = store_.save(change->state); !saved) return saved;
    adopt(*change);
    if (copies_end) shed({}, "plan_changed");
    return {};
}

Result<void> PlanService::rearm(const Operator& by) {
    const auto change = controller_.rearm(facts(), by.force, by.who, by.why, now());
    if (!change) return std::unexpected(change.error());
    if (auto saved = store_.save(change->state); !saved) return saved;
    adopt(*change);
    return {};
}

Result<void> PlanService::roll_back(const Operator& by, Running running) {
    const std::string reason = by.why.empty() ? "by hand" : "by hand: " + by.why;
    return carry_out(controller_.roll_back(reason, "manual", by.who, now()), running);
}

Result<void> PlanService::carry_out(const traffic::Change& rollback, Running running) {
    auto saved = store_.save(rollback.state);
    store_.note(rollback.entry);
    log::warn("plan: rolled back: {}", rollback.state.reason);
    if (!saved)
        log::error("plan: the rollback holds until a restart only: {}", saved.error().to_string());
    probe_->rolled_back(rollback.state.reason_kind);
    probe_->latched(true);
    shed({}, "rolled_back");
    for (const auto& pool : *pools_)
        if (pool->name() != controller_.plan().stable) gateway_->close_pool(*pool, running);
    return saved;
}

// ---- Watching -------------------------------------------------------------------------------------

bool PlanService::pressure() const {
    if (gateway_->queued_requests() > 0) return true;
    const Pool* const stable = pools_->find(controller_.plan().stable);
    return std::ranges::any_of(stable->workers(), [](const WorkerView& worker) {
        return worker.report && worker.report->waiting > 0;
    });
}

void PlanService::watch_pools() {
    for (const auto& pool : *pools_)
        controller_.on_pool_ready(pool->name(), pools_->any_ready(*pool), now().steady);
}

void PlanService::watch() {
    watch_pools();
    if (++turns_ % kTurnsOfGuards == 0) {
        const auto happened = controller_.tick(now());
        for (const traffic::AuditEntry& entry : happened.notes) store_.note(entry);
        if (happened.rolled_back) (void)carry_out(*happened.rolled_back, Running::kFinish);
    }
    timer_ = loop_.call_after(kTurn, [this] { watch(); });
}

void PlanService::shed(std::string_view pool, std::string_view result) {
    for (const std::string& rid : pairs_.running(pool)) {
        if (!shed_.insert(rid).second) continue;
        probe_->shadow(result);
        gateway_->abandon(rid);
    }
}

// ---- Requests -------------------------------------------------------------------------------------

void PlanService::on_arrival(Generation& generation) {
    // Copies on the pool that answers are in the way of what waits.
    if (generation.request().role == RequestRole::kAnswer && gateway_->queued_requests() > 0)
        shed(controller_.plan().stable, "dropped_pressure");
}

void PlanService::on_dispatch(Generation& generation) {
    const InboundRequest& request = generation.request();
    if (request.role == RequestRole::kShadow) return;
    const RequestKind kind = request.outline.kind;
    // Whether JSON is any is seen only in the whole answer.
    const bool shaped = kind == RequestKind::kJsonSchema || kind == RequestKind::kTools;
    if (shaped && !controller_.plan().guards.empty()) generation.collect();
    if (request.pinned_pool.empty()) copy(generation);
}

void PlanService::copy(Generation& generation) {
    if (controller_.plan().shadows.empty()) return;
    const InboundRequest& request = generation.request();
    traffic::Copies copies =
        controller_.copies(request.conversation, generation.pool()->name(), pressure());
    for (const traffic::CopyDropped dropped : copies.dropped)
        probe_->shadow(dropped == traffic::CopyDropped::kBudget ? "dropped_budget"
                                                                : "dropped_pressure");
    for (traffic::Copy& each : copies.made) {
        Pool* const pool = pools_->find(each.pool);
        if (pool == nullptr || !pools_->any_ready(*pool)) {
            probe_->shadow("no_worker");
            continue;
        }
        generation.collect();
        // Later: the answer goes first.
        loop_.post([this, original = generation.shared_from_this(), pool,
                    place = std::make_shared<traffic::Copy>(std::move(each))] {
            if (gateway_ == nullptr) return;
            if (!controller_.open(pool->name(), now().steady) || original->progress().over())
                return probe_->shadow("no_worker");
            const std::string rid = gateway_->copy(*original, *pool);
            // It may be over already: no worker had room.
            if (rid.empty() || gateway_->find(rid) == nullptr) return probe_->shadow("no_worker");
            pairs_.add(original->rid(), original->request().outline.fixed, rid, std::move(*place));
        });
    }
}

void PlanService::on_done(const Generation& generation, const RequestReport& report) {
    if (gateway_ == nullptr) return;
    if (!shed_.contains(report.rid)) feed_guards(report);
    for (ShadowPair& pair : pairs_.on_done({report, generation.prepared()}))
        settle(std::move(pair));
}

void PlanService::feed_guards(const RequestReport& report) {
    if (is_nobodys(report)) return;
    const auto at = now().steady;
    // Each leg but the last one broke, or there would be no other.
    for (std::size_t i = 0; i + 1 < report.legs.size(); ++i)
        controller_.on_attempt(report.legs[i].pool, {.failed = true}, at);
    traffic::Attempt attempt{
        .failed = is_pools_failure(report.outcome) && report.outcome != Outcome::kInvalidOutput,
        .invalid = is_invalid(report)};
    // A time that spans two legs is neither's.
    if (report.ttft && report.legs.size() == 1) {
        attempt.ttft = *report.ttft - report.queued;
        if (report.completion_tokens > 1)
            attempt.tbt = (report.duration - *report.ttft) / double(report.completion_tokens - 1);
    }
    controller_.on_attempt(report.legs.back().pool, attempt, at);
}

// ---- Comparing ------------------------------------------------------------------------------------

void PlanService::settle(ShadowPair pair) {
    if (const auto shed = shed_.find(pair.copy.report.rid); shed != shed_.end()) {
        shed_.erase(shed);
        if (options_.on_copy_done)
            options_.on_copy_done(pair.copy.report, pair.answer.report.pool, std::nullopt);
        return;
    }
    if (is_nobodys(pair.answer.report) || is_nobodys(pair.copy.report))
        return conclude(pair, std::nullopt, "uncompared");
    traffic::Comparison comparison = compare(pair);
    const bool scored = tokens_comparable(pair) && !pressure() && !pair.answer.report.answer->cut &&
                        !pair.answer.report.answer->output_ids.empty();
    if (scored) return score(std::move(pair), std::move(comparison));
    conclude(pair, comparison, comparison.same() ? "same" : "differs");
}

void PlanService::score(ShadowPair pair, traffic::Comparison comparison) {
    Pool* const baseline = pools_->find(pair.answer.report.pool);
    Pool* const candidate = pools_->find(pair.copy.report.pool);
    const std::uint64_t id = ++scorings_;
    const auto kept = std::make_shared<ShadowPair>(std::move(pair));
    auto done = [this, id, kept, comparison](std::optional<LogprobScorer::Scores> scores) mutable {
        if (scores)
            traffic::add_logprobs(comparison, scores->baseline, scores->candidate,
                                  kLogprobTolerance);
        conclude(*kept, comparison, comparison.same() ? "same" : "differs");
        // The scorer is at work in this very call.
        loop_.post(
            [gone = std::shared_ptr<LogprobScorer>(std::move(scorers_.extract(id).mapped()))] {});
    };
    scorers_[id] = std::make_unique<LogprobScorer>(
        loop_, client_, *baseline, *candidate, *kept->answer.prepared,
        kept->answer.report.answer->output_ids, std::move(done));
}

void PlanService::conclude(const ShadowPair& pair,
                           const std::optional<traffic::Comparison>& comparison,
                           std::string_view result) {
    probe_->shadow(result);
    if (comparison) {
        controller_.on_comparison(pair.copy.report.pool, !comparison->same(), now().steady);
        if (!comparison->same())
            log::info("shadow: {} on {} differs from {}: {}", pair.answer.report.request_id,
                      pair.copy.report.pool, pair.answer.report.pool,
                      fmt::join(comparison->differences, ", "));
    }
    if (options_.on_copy_done)
        options_.on_copy_done(pair.copy.report, pair.answer.report.pool, comparison);
}

}  // namespace sluice::gateway
