#include "kv/worth_order.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace sluice::kv {

void WorthOrder::add(Node& node, float cost) {
    SLUICE_ASSERT(node.place_ == Node::kAside && cost > 0.0F);
    node.cost_ = cost;
    node.uses_ = 0;
    rate(node);
    push(node);
}

void WorthOrder::add_as(Node& node, const Node& other) {
    SLUICE_ASSERT(node.place_ == Node::kAside);
    node.worth_ = other.worth_;
    node.cost_ = other.cost_;
    node.uses_ = other.uses_;
    node.holds_ = other.holds_;
    push(node);
}

void WorthOrder::rate(Node& node) {
    node.uses_ = std::min(node.uses_ + 1, kUsesMost);
    node.worth_ = {
        .value = age_ + static_cast<double>(node.uses_) * static_cast<double>(node.cost_),
        .last_use = ++uses_};
}

void WorthOrder::remove(Node& node) {
    if (node.place_ != Node::kAside) take_out(node);
}

void WorthOrder::unhold(Node& node) {
    SLUICE_ASSERT(node.holds_ > 0);
    if (--node.holds_ == 0 && node.place_ == Node::kAside) push(node);
}

WorthOrder::Node* WorthOrder::take_next() {
    while (!heap_.empty()) {
        const Slot first = heap_.front();
        Node& next = *first.node;
        if (!next.held() && first.worth < next.worth_) {
            sink({.worth = next.worth_, .node = &next}, 0);
            continue;
        }
        take_out(next);
        if (next.held()) continue;
        age_ = std::max(age_, next.worth_.value);
        return &next;
    }
    return nullptr;
}

// ---- The heap, whose nodes know where they are ----------------------------------------------------

void WorthOrder::push(Node& node) {
    heap_.emplace_back();
    rise({.worth = node.worth_, .node = &node}, heap_.size() - 1);
}

void WorthOrder::place(const Slot& slot, std::size_t at) {
    heap_[at] = slot;
    slot.node->place_ = static_cast<std::uint32_t>(at);
}

void WorthOrder::rise(const Slot& slot, std::size_t at) {
    while (at > 0) {
        const std::size_t parent = (at - 1) / kChildren;
        if (heap_[parent].worth <= slot.worth) break;
        place(heap_[parent], at);
        at = parent;
    }
    place(slot, at);
}

void WorthOrder::sink(const Slot& slot, std::size_t at) {
    while (kChildren * at + 1 < heap_.size()) {
        std::size_t least = kChildren * at + 1;
        const std::size_t end = std::min(least + kChildren, heap_.size());
        for (std::size_t child = least + 1; child < end; ++child)
            if (heap_[child].worth < heap_[least].worth) least = child;
        if (slot.worth <= heap_[least].worth) break;
        place(heap_[least], at);
        at = least;
    }
    place(slot, at);
}

void WorthOrder::take_out(Node& node) {
    const Slot last = heap_.back();
    heap_.pop_back();
    const std::size_t at = std::exchange(node.place_, Node::kAside);
    if (last.node != &node) {
        if (at > 0 && last.worth < heap_[(at - 1) / kChildren].worth) {
            rise(last, at);
        } else {
            sink(last, at);
        }
    }
    // What was once full of small entries isn't for ever.
    if (heap_.size() < heap_.capacity() / 8) heap_.shrink_to_fit();
}

}  // namespace sluice::kv
