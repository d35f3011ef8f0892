#include "sim/event_queue.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace sluice::sim {

EventQueue::EventId EventQueue::at(Time time, Action action) {
    SLUICE_ASSERT(action != nullptr);
    if (free_.empty()) {
        free_.push_back(static_cast<std::uint32_t>(actions_.size()));
        actions_.emplace_back();
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    actions_[slot].action = std::move(action);
    const EventId id = (EventId{++actions_[slot].life} << 32) | slot;
    queue_.push({.time = std::max(time, now_), .serial = ++serial_, .id = id});
    return id;
}

EventQueue::Slot* EventQueue::find(EventId id) {
    const auto slot = static_cast<std::uint32_t>(id);
    if (slot >= actions_.size()) return nullptr;
    Slot& found = actions_[slot];
    return found.life == id >> 32 && found.action ? &found : nullptr;
}

EventQueue::Action EventQueue::take(EventId id) {
    Slot* const slot = find(id);
    if (slot == nullptr) return nullptr;
    free_.push_back(static_cast<std::uint32_t>(id));
    return std::exchange(slot->action, nullptr);
}

void EventQueue::cancel(EventId id) { static_cast<void>(take(id)); }

bool EventQueue::step() {
    while (!queue_.empty()) {
        const Entry next = queue_.top();
        queue_.pop();
        const Action action = take(next.id);
        if (!action) continue;
        now_ = next.time;
        action();
        return true;
    }
    return false;
}

}  // namespace sluice::sim
