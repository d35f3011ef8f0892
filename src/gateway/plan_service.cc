#include "gateway/plan_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "gateway/plan_endpoints.h"

namespace sluice::gateway {
namespace {

using Running = dispatch::Running;

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

    [[nodiscard]] bool answers(const Pool& pool) const override {
        const traffic::Plan& plan = controller_.plan();
        return pool.name() == plan.stable ||
               (plan.splits_to(pool.name()) &&
                controller_.open(pool.name(), std::chrono::steady_clock::now()));
    }

    [[nodiscard]] std::optional<std::string> refuse_pin(const Pool& pool) const override {
        if (!controller_.latched() || pool.name() == controller_.plan().stable) return std::nullopt;
        return fmt::format(
            "all traffic was rolled back to {}: nothing is sent to {} before "
            "`sluice ctl plan rearm`",
            controller_.plan().stable, pool.name());
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

/// A copy that its pool had no room for, in contrast to one that it refused for what it asks.
bool found_no_room(const RequestReport& copy) {
    const bool refused = copy.outcome == Outcome::kRejected &&
                         copy.error_code != to_string(protocol::ApiErrorCode::kQueueFull);
    return copy.legs.empty() && !refused;
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
    for (const auto& [unused, scoring] : running_scorings_)
        conclude(scoring.pair, scoring.comparison);
    running_scorings_.clear();
    gateway_ = nullptr;
    pools_ = nullptr;
}

std::vector<traffic::PoolFacts> PlanService::facts() const {
    std::vector<traffic::PoolFacts> facts;
    for (const auto& pool : *pools_) {
        facts.push_back({.name = pool->name(),
                         .ready_workers = pools_->registry().ready_in(
                             pool->index(), std::chrono::steady_clock::now()),
                         .capacity = places_of(*pool),
                         .running = pools_->registry().leases_in(pool->index())});
    }
    return facts;
}

// ---- Changes --------------------------------------------------------------------------------------

Result<void> PlanService::apply(traffic::Plan plan, const Operator& by) {
    const auto change =
        controller_.apply(std::move(plan), facts(), by.force, by.who, by.why, now());
    if (!change) return std::unexpected(change.error());
    return take(*change);
}

Result<void> PlanService::reload(traffic::Plan plan) {
    const std::string digest = traffic::digest(plan);
    if (digest == controller_.state().config_digest) return {};
    auto change = controller_.apply(std::move(plan), facts(), false, "configuration",
                                    "the file was read again", now());
    if (!change) return std::unexpected(change.error());
    change->state.config_digest = digest;
    return take(*change);
}

Result<void> PlanService::take(const traffic::Change& change) {
    const bool copies_end = change.state.plan.shadows != controller_.plan().shadows;
    if (auto saved = store_.save(change.state); !saved) return saved;
    controller_.adopt(change.state, now());
    store_.note(change.entry);
    probe_->latched(controller_.latched());
    gateway_->set_stable(*pools_->find(controller_.plan().stable));
    gateway_->replan();
    if (copies_end) shed({}, "plan_changed");
    return {};
}

Result<void> PlanService::rearm(const Operator& by) {
    const auto change = controller_.rearm(facts(), by.force, by.who, by.why, now());
    if (!change) return std::unexpected(change.error());
    return take(*change);
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
    // Beyond what its engines run, requests wait in them.
    const Pool& stable = *pools_->find(controller_.plan().stable);
    const auto places = places_of(stable);
    return places && pools_->registry().leases_in(stable.index()) > *places;
}

std::optional<std::uint64_t> PlanService::places_of(const Pool& pool) const {
    if (const auto told = pools_->registry().capacity_of(pool.index()); told > 0) return told;
    // A native engine says itself how many it runs at a time.
    std::uint64_t places = 0;
    for (const WorkerView& worker : pool.workers())
        if (worker.state == "ready" && worker.versions) places += worker.versions->max_running;
    return places > 0 ? std::optional(places) : std::nullopt;
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
    if (generation.request().role == RequestRole::kShadow) {
        // Known before it can end: it may be refused at once.
        if (auto copy = std::exchange(new_copy_, std::nullopt))
            pairs_.add(copy->rid, copy->fixed, generation.rid(), std::move(copy->place));
        return;
    }
    // Copies on the pool that answers are in the way of what waits.
    if (gateway_->queued_requests() > 0) shed(controller_.plan().stable, "dropped_pressure");
}

void PlanService::on_dispatch(Generation& generation) {
    const InboundRequest& request = generation.request();
    if (request.role == RequestRole::kShadow) return;
    const RequestKind kind = request.outline.kind;
    // Whether JSON is any is seen only in the whole answer.
    const bool shaped = kind == RequestKind::kJsonSchema || kind == RequestKind::kTools;
    if (shaped) generation.collect();
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
        loop_.post([this, original = generation.shared_from_this(),
                    place = std::make_shared<traffic::Copy>(std::move(each))] {
            if (gateway_ != nullptr) start_copy(*original, std::move(*place));
        });
    }
}

void PlanService::start_copy(const Generation& original, traffic::Copy place) {
    Pool& pool = *pools_->find(place.pool);
    if (!controller_.open(pool.name(), now().steady) || original.progress().over())
        return probe_->shadow("no_worker");
    new_copy_ = {.rid = original.rid(),
                 .fixed = original.request().outline.fixed,
                 .place = std::move(place)};
    if (!gateway_->copy(original, pool).empty()) return;
    new_copy_.reset();
    probe_->shadow("no_worker");
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
        .invalid = report.outcome == Outcome::kInvalidOutput};
    // A time that spans two legs is neither's.
    if (report.ttft && report.legs.size() == 1) {
        attempt.ttft = *report.ttft - report.queued;
        attempt.tbt = report.mean_gap;
    }
    controller_.on_attempt(report.legs.back().pool, attempt, at);
}

// ---- Comparing ------------------------------------------------------------------------------------

void PlanService::settle(ShadowPair pair) {
    RequestReport& copy = pair.copy.report;
    if (const auto shed = shed_.find(copy.rid); shed != shed_.end()) {
        shed_.erase(shed);
        // We took it back, as a client would.
        copy.outcome = Outcome::kClientGone;
        copy.error_code.clear();
        return tell(pair, std::nullopt);
    }
    if (found_no_room(copy)) return probe_->shadow("no_worker");
    if (is_nobodys(pair.answer.report)) {
        probe_->shadow("uncompared");
        return tell(pair, std::nullopt);
    }
    traffic::Comparison comparison = compare(pair);
    if (worth_scoring(pair)) return score(std::move(pair), std::move(comparison));
    conclude(pair, comparison);
}

bool PlanService::worth_scoring(const ShadowPair& pair) const {
    const CollectedAnswer* const answer = pair.answer.report.answer.get();
    return tokens_comparable(pair) && !answer->cut && !answer->output_ids.empty() && !pressure() &&
           controller_.open(pair.copy.report.pool, now().steady);
}

void PlanService::score(ShadowPair pair, traffic::Comparison comparison) {
    Pool* const baseline = pools_->find(pair.answer.report.pool);
    Pool* const candidate = pools_->find(pair.copy.report.pool);
    const std::uint64_t id = ++scorings_;
    Scoring& scoring = running_scorings_[id];
    scoring.pair = std::move(pair);
    scoring.comparison = std::move(comparison);
    scoring.scorer = std::make_unique<LogprobScorer>(
        loop_, client_, *baseline, *candidate, *scoring.pair.answer.prepared,
        scoring.pair.answer.report.answer->output_ids,
        [this, id](const std::optional<LogprobScorer::Scores>& scores) {
            // The scorer is at work in this very call: it goes later.
            const auto done =
                std::make_shared<Scoring>(std::move(running_scorings_.extract(id).mapped()));
            if (scores)
                traffic::add_logprobs(done->comparison, scores->baseline, scores->candidate,
                                      kLogprobTolerance);
            conclude(done->pair, done->comparison);
            loop_.post([done] {});
        });
}

void PlanService::conclude(const ShadowPair& pair, const traffic::Comparison& comparison) {
    probe_->shadow(comparison.same() ? "same" : "differs");
    controller_.on_comparison(pair.copy.report.pool, !comparison.same(), now().steady);
    if (!comparison.same())
        log::info("shadow: {} on {} differs from {}: {}", pair.answer.report.request_id,
                  pair.copy.report.pool, pair.answer.report.pool,
                  fmt::join(comparison.differences, ", "));
    tell(pair, comparison);
}

void PlanService::tell(const ShadowPair& pair,
                       const std::optional<traffic::Comparison>& comparison) {
    if (options_.on_copy_done)
        options_.on_copy_done(pair.copy.report, pair.answer.report.pool, comparison);
}

}  // namespace sluice::gateway
