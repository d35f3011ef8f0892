#include "app/supervisor_policy.h"

#include <algorithm>

#include "app/command.h"
#include "base/assert.h"
#include "base/limits.h"

namespace sluice::app {

using std::chrono::milliseconds;
using Kind = SupervisorPolicy::Action::Kind;

SupervisorPolicy::SupervisorPolicy(std::size_t engines, std::size_t nodes)
    : children_(engines + nodes + 1) {
    for (std::size_t i = engines; i < engines + nodes; ++i) children_[i].stage = Stage::kNode;
    children_.back().stage = Stage::kGateway;
}

std::size_t SupervisorPolicy::ready(Stage stage) const {
    return static_cast<std::size_t>(std::ranges::count_if(children_, [stage](const Child& child) {
        return child.stage == stage && child.phase == Phase::kReady;
    }));
}

bool SupervisorPolicy::all_ready_below(Stage stage) const {
    return std::ranges::all_of(children_, [stage](const Child& child) {
        return child.stage >= stage || child.phase == Phase::kReady;
    });
}

bool SupervisorPolicy::any_alive_above(Stage stage) const {
    return std::ranges::any_of(
        children_, [stage](const Child& child) { return child.stage > stage && child.alive(); });
}

void SupervisorPolicy::started(std::size_t child, Time now) {
    Child& it = children_[child];
    it.phase = Phase::kStarting;
    it.started = now;
    it.due = now + std::chrono::seconds(limits::kChildStartSeconds);
    it.limited = true;
    it.asked_to_end = false;
    it.killed = false;
}

void SupervisorPolicy::became_ready(std::size_t child) {
    Child& it = children_[child];
    if (it.phase != Phase::kStarting) return;
    it.phase = Phase::kReady;
    it.limited = it.asked_to_end;
}

std::optional<milliseconds> SupervisorPolicy::ended(std::size_t child, const ExitStatus& status,
                                                    Time now) {
    Child& it = children_[child];
    if (stopping_) {
        it.phase = Phase::kEnded;
        return std::nullopt;
    }
    if (!announced_) {
        it.phase = Phase::kEnded;
        abandon(status);
        return std::nullopt;
    }
    if (it.alive() && now - it.started >= kGoodLife) it.failures = 0;
    // Six doublings are more than the longest pause.
    const milliseconds pause =
        std::min(kLongestPause, kFirstPause * (1 << std::min(it.failures, 6)));
    ++it.failures;
    it.phase = Phase::kPausing;
    it.due = now + pause;
    return pause;
}

/// Nothing has been served yet, so nobody needs time to finish.
void SupervisorPolicy::abandon(const ExitStatus& status) {
    const bool has_code = status.kind == ExitStatus::Kind::kExited && status.value != kDone;
    code_ = has_code ? status.value : kFailed;
    stopping_ = true;
    at_once_ = true;
}

void SupervisorPolicy::stop(int code) {
    at_once_ = stopping_;
    if (!stopping_) code_ = code;
    stopping_ = true;
}

std::vector<SupervisorPolicy::Action> SupervisorPolicy::step(Time now) {
    std::vector<Action> actions;
    if (finished_) return actions;
    kill_overdue(now, actions);
    if (stopping_) {
        step_down(now, actions);
    } else {
        step_up(now, actions);
    }
    return actions;
}

void SupervisorPolicy::kill_overdue(Time now, std::vector<Action>& actions) {
    for (std::size_t i = 0; i < children_.size(); ++i) {
        Child& child = children_[i];
        const bool overdue = child.limited && child.due <= now;
        if (!child.alive() || child.killed || !(at_once_ || overdue)) continue;
        child.killed = true;
        actions.push_back({Kind::kKill, i});
    }
}

void SupervisorPolicy::step_up(Time now, std::vector<Action>& actions) {
    for (std::size_t i = 0; i < children_.size(); ++i) {
        Child& child = children_[i];
        const bool first = child.phase == Phase::kIdle && all_ready_below(child.stage);
        const bool again = child.phase == Phase::kPausing && child.due <= now;
        if (first || again) actions.push_back({Kind::kStart, i});
    }
    if (!announced_ && children_[gateway()].phase == Phase::kReady) {
        announced_ = true;
        actions.push_back({Kind::kAnnounce});
    }
}

void SupervisorPolicy::ask_to_end(std::size_t child, Time now, std::vector<Action>& actions) {
    Child& it = children_[child];
    if (!it.alive() || it.asked_to_end) return;
    it.asked_to_end = true;
    it.due = now + std::chrono::seconds(limits::kChildStopSeconds);
    it.limited = true;
    actions.push_back({Kind::kAskToEnd, child});
}

void SupervisorPolicy::step_down(Time now, std::vector<Action>& actions) {
    for (std::size_t i = 0; i < children_.size() && !at_once_; ++i)
        if (!any_alive_above(children_[i].stage)) ask_to_end(i, now, actions);
    const auto is_alive = [](const Child& child) { return child.alive(); };
    if (std::any_of(children_.begin(), children_.end(), is_alive)) return;
    finished_ = true;
    actions.push_back({Kind::kFinish, 0, code_});
}

std::optional<SupervisorPolicy::Time> SupervisorPolicy::next() const {
    std::optional<Time> earliest;
    for (const Child& child : children_) {
        const bool pausing = child.phase == Phase::kPausing && !stopping_;
        const bool watched = child.alive() && child.limited && !child.killed;
        if (!pausing && !watched) continue;
        if (!earliest || child.due < *earliest) earliest = child.due;
    }
    return earliest;
}

}  // namespace sluice::app
