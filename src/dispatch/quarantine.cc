#include "dispatch/quarantine.h"

#include <utility>

namespace sluice::dispatch {

void Quarantine::add(std::uint64_t prompt, Time now) {
    forget_old(now);
    const Time until = now + time_;
    if (std::exchange(until_[prompt], until) == until) return;
    ends_.emplace_back(until, prompt);
    while (ends_.size() > prompts_max_) {
        const auto [end, oldest] = ends_.front();
        ends_.pop_front();
        if (const auto at = until_.find(oldest); at != until_.end() && at->second == end)
            until_.erase(at);
    }
}

bool Quarantine::holds(std::uint64_t prompt, Time now) {
    forget_old(now);
    return until_.contains(prompt);
}

void Quarantine::forget_old(Time now) {
    while (!ends_.empty() && ends_.front().first <= now) {
        const auto [end, prompt] = ends_.front();
        ends_.pop_front();
        if (const auto at = until_.find(prompt); at != until_.end() && at->second == end)
            until_.erase(at);
    }
}

}  // namespace sluice::dispatch
