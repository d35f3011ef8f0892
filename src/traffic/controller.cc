#include "traffic/controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/units.h"

namespace sluice::traffic {
namespace {

using std::chrono::milliseconds;

std::map<std::string, WallTime, std::less<>> new_leases(const Plan& plan, WallTime now) {
    std::map<std::string, WallTime, std::less<>> ends;
    for (const Split& split : plan.splits) ends[split.pool] = now + split.lease;
    return ends;
}

bool pools_exist(const Plan& plan, std::span<const std::string> pools) {
    const auto exists = [&](const std::string& name) {
        return std::ranges::find(pools, name) != pools.end();
    };
    return exists(plan.stable) && std::ranges::all_of(plan.splits, exists, &Split::pool) &&
           std::ranges::all_of(plan.shadows, exists, &Shadow::pool);
}

std::string because(std::string_view what, const std::string& why) {
    return why.empty() ? std::string(what) : fmt::format("{}: {}", what, why);
}

}  // namespace

Controller::Controller(State state, Now now) { adopt(std::move(state), now); }

State Controller::fresh(Plan plan, std::uint64_t version, WallTime now) {
    State state{.version = version, .plan = std::move(plan)};
    state.config_digest = digest(state.plan);
    state.lease_ends = new_leases(state.plan, now);
    return state;
}

// ---- Decisions ------------------------------------------------------------------------------------

const std::string& Controller::choose(std::string_view conversation, Time now) const {
    const Plan& plan = state_.plan;
    if (state_.latched || plan.splits.empty()) return plan.stable;
    const auto owner = table_.owner(place_of(conversation, plan.salt, "split"));
    if (!owner) return plan.stable;
    const std::string& pool = plan.splits[*owner].pool;
    const auto watch = watches_.find(pool);
    const bool lost = watch != watches_.end() && watch->second.was_ready && !watch->second.ready;
    return lost || lease_left(pool, now) <= milliseconds::zero() ? plan.stable : pool;
}

bool Controller::open(std::string_view pool, Time now) const {
    if (pool == state_.plan.stable) return true;
    if (state_.latched) return false;
    return state_.plan.shadows_to(pool) ||
           (state_.plan.splits_to(pool) && lease_left(pool, now) > milliseconds::zero());
}

Copies Controller::copies(std::string_view conversation, std::string_view answering,
                          bool pressure) {
    Copies copies;
    const Plan& plan = state_.plan;
    // A split pool's answers are no baseline.
    if (state_.latched || answering != plan.stable || plan.shadows.empty()) return copies;
    const std::uint32_t place = place_of(conversation, plan.salt, "shadow");
    for (const Shadow& shadow : plan.shadows) {
        if (place >= std::lround(shadow.share * SplitTable::kUnits)) continue;
        if (pressure) {
            copies.dropped.push_back(CopyDropped::kPressure);
            continue;
        }
        ShadowBudget::Place budget = budgets_.find(shadow.pool)->second.take();
        if (budget.taken()) {
            copies.made.push_back({shadow.pool, std::move(budget)});
        } else {
            copies.dropped.push_back(CopyDropped::kBudget);
        }
    }
    return copies;
}

// ---- Changes --------------------------------------------------------------------------------------

AuditEntry Controller::entry(std::string what, std::string why, const std::string& who,
                             const State& state, Now now) const {
    return {.at = now.wall,
            .who = who,
            .what = std::move(what),
            .why = std::move(why),
            .version = state.version,
            .digest = digest(state.plan),
            .latched = state.latched};
}

Result<Change> Controller::apply(Plan plan, std::span<const PoolFacts> pools, bool force,
                                 const std::string& who, const std::string& why, Now now) const {
    if (const auto refused = refuse_without_headroom(plan, pools, force))
        return std::unexpected(*refused);
    State next = state_;
    const bool renewal = plan == state_.plan;
    if (!renewal) ++next.version;
    next.plan = std::move(plan);
    next.lease_ends = new_leases(next.plan, now.wall);
    AuditEntry line =
        entry("apply", because(renewal ? "weights renewed" : "new plan", why), who, next, now);
    return Change{std::move(next), std::move(line)};
}

Result<Change> Controller::rearm(std::span<const PoolFacts> pools, bool force,
                                 const std::string& who, const std::string& why, Now now) const {
    if (!state_.latched)
        return std::unexpected(
            Error::invalid("nothing was rolled back, so there is nothing to rearm"));
    if (const auto refused = refuse_without_headroom(state_.plan, pools, force))
        return std::unexpected(*refused);
    State next = state_;
    next.latched = false;
    next.lease_ends = new_leases(next.plan, now.wall);
    AuditEntry line =
        entry("rearm", because(fmt::format("after \"{}\"", state_.reason), why), who, next, now);
    next.reason.clear();
    next.reason_kind.clear();
    next.since = {};
    return Change{std::move(next), std::move(line)};
}

void Controller::adopt(State state, Now now) {
    const bool same_plan = state.plan == state_.plan && state.latched == state_.latched;
    state_ = std::move(state);
    set_leases(now);
    if (same_plan) return;
    // Evidence about another plan, or from before a rollback, says nothing about this one.
    table_ = SplitTable(state_.plan.splits);
    samples_.clear();
    guards_.clear();
    for (const Guard& guard : state_.plan.guards) guards_.emplace_back(guard);
    for (const Shadow& shadow : state_.plan.shadows)
        budgets_.try_emplace(shadow.pool, shadow.max_concurrent)
            .first->second.set_max(shadow.max_concurrent);
    for (auto& [pool, watch] : watches_) watch = {.was_ready = watch.ready, .ready = watch.ready};
}

void Controller::set_leases(Now now) {
    lease_ends_.clear();
    for (const Split& split : state_.plan.splits) {
        const auto end = state_.lease_ends.find(split.pool);
        if (end == state_.lease_ends.end()) continue;
        // A clock that was set back must not lengthen a lease.
        const auto left = std::min<std::chrono::nanoseconds>(end->second - now.wall, split.lease);
        lease_ends_[split.pool] = now.steady + left;
    }
}

Change Controller::roll_back(const std::string& reason, std::string kind, const std::string& who,
                             Now now) {
    if (!state_.latched) {
        state_.latched = true;
        state_.reason = reason;
        state_.reason_kind = std::move(kind);
        state_.since = std::chrono::floor<milliseconds>(now.wall);
        samples_.clear();
    }
    return {state_, entry("rollback", reason, who, state_, now)};
}

// ---- Events ---------------------------------------------------------------------------------------

void Controller::on_attempt(std::string_view pool, const Attempt& attempt, Time now) {
    if (guards_.empty() || state_.latched) return;
    const Plan& plan = state_.plan;
    if (pool != plan.stable && !plan.splits_to(pool) && !plan.shadows_to(pool)) return;
    samples_[std::string(pool)].add(attempt, now);
}

void Controller::on_comparison(std::string_view pool, bool differs, Time now) {
    if (guards_.empty() || state_.latched || !state_.plan.shadows_to(pool)) return;
    samples_[std::string(pool)].add_comparison(differs, now);
}

void Controller::on_pool_ready(std::string_view pool, bool ready, Time now) {
    PoolWatch& watch = watches_[std::string(pool)];
    if (watch.was_ready && watch.ready && !ready) {
        watch.lost = now;
        if (watch.outages.size() == kOutages) watch.outages.erase(watch.outages.begin());
        watch.outages.push_back(now);
    }
    watch.ready = ready;
    watch.was_ready = watch.was_ready || ready;
}

std::optional<std::string> Controller::broken_pool(Time now) {
    for (auto& [pool, watch] : watches_) {
        // What only gets copies may come and go, unless somebody wants it watched.
        const Plan& plan = state_.plan;
        const bool guarded =
            std::ranges::find(plan.guards, pool, &Guard::pool) != plan.guards.end();
        const bool watched = plan.splits_to(pool) || (plan.shadows_to(pool) && guarded);
        if (!watched || pool == plan.stable) continue;
        std::erase_if(watch.outages, [&](Time at) { return at < now - kOutageSpan; });
        if (watch.outages.size() >= kOutages)
            return fmt::format("{} lost all its workers {} times within {}", pool,
                               watch.outages.size(), format_duration(kOutageSpan));
        if (watch.was_ready && !watch.ready && now - watch.lost >= kOutageMax)
            return fmt::format("{} has had no worker for {}", pool, format_duration(kOutageMax));
    }
    return std::nullopt;
}

std::optional<Change> Controller::look_at_guards(Now now) {
    milliseconds longest{0};
    for (const GuardWatch& watch : guards_) longest = std::max(longest, watch.guard().window);
    for (auto& [pool, samples] : samples_) samples.forget_before(now.steady - longest);
    const SampleWindow none;
    const auto samples_of = [&](const std::string& pool) -> const SampleWindow& {
        const auto found = samples_.find(pool);
        return found == samples_.end() ? none : found->second;
    };
    for (GuardWatch& watch : guards_) {
        const auto reason =
            watch.look(samples_of(watch.guard().pool), samples_of(state_.plan.stable), now.steady);
        if (!reason) continue;
        std::string kind(to_string(watch.guard().metric));
        return roll_back(*reason, std::move(kind), "guard", now);
    }
    return std::nullopt;
}

void Controller::note_ended_leases(Now now, std::vector<AuditEntry>& notes) {
    for (auto at = lease_ends_.begin(); at != lease_ends_.end();) {
        if (at->second > now.steady) {
            ++at;
            continue;
        }
        notes.push_back(entry("lease_ended",
                              fmt::format("the weight of {} was not renewed; {} answers its share",
                                          at->first, state_.plan.stable),
                              "lease", state_, now));
        at = lease_ends_.erase(at);
    }
}

Controller::Happened Controller::tick(Now now) {
    Happened happened;
    if (state_.latched) return happened;
    note_ended_leases(now, happened.notes);
    if (const auto broken = broken_pool(now.steady)) {
        happened.rolled_back = roll_back(*broken, "breaker", "breaker", now);
    } else {
        happened.rolled_back = look_at_guards(now);
    }
    return happened;
}

// ---- What is --------------------------------------------------------------------------------------

milliseconds Controller::lease_left(std::string_view pool, Time now) const {
    const auto end = lease_ends_.find(pool);
    if (end == lease_ends_.end()) return milliseconds::zero();
    return std::max(milliseconds::zero(), std::chrono::ceil<milliseconds>(end->second - now));
}

std::uint32_t Controller::copies_running(std::string_view pool) const {
    const auto budget = budgets_.find(pool);
    return budget == budgets_.end() ? 0 : budget->second.used();
}

Change resume(const Result<std::optional<State>>& stored, const Plan& configured,
              std::span<const std::string> pools, Now now) {
    const std::string now_digest = digest(configured);
    State state = Controller::fresh(configured, 1, now.wall);
    std::string why = "the configuration's plan";
    if (!stored) {
        state.latched = true;
        state.reason = fmt::format("the stored plan can't be read: {}", stored.error().to_string());
        state.reason_kind = "unreadable";
        state.since = std::chrono::floor<milliseconds>(now.wall);
        why = state.reason;
    } else if (*stored) {
        const State& before = **stored;
        if (before.config_digest == now_digest && pools_exist(before.plan, pools)) {
            state = before;
            why = "the stored plan goes on";
        } else {
            state.version = before.version + 1;
            state.latched = before.latched;
            state.reason = before.reason;
            state.reason_kind = before.reason_kind;
            state.since = before.since;
            why = "the configuration's plan has changed";
        }
    }
    AuditEntry line{.at = now.wall,
                    .who = "configuration",
                    .what = "start",
                    .why = std::move(why),
                    .version = state.version,
                    .digest = digest(state.plan),
                    .latched = state.latched};
    return {std::move(state), std::move(line)};
}

}  // namespace sluice::traffic
