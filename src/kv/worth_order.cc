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
    heap_.push_back(&node);
    place(node, heap_.size() - 1);
    sift(node);
}

void WorthOrder::use(Node& node) {
    rate(node);
    if (node.place_ != Node::kAside) sift(node);
}

void WorthOrder::rate(Node& node) {
    node.uses_ = std::min(node.uses_ + 1, kUsesMost);
    node.worth_ = age_ + static_cast<double>(node.uses_) * static_cast<double>(node.cost_);
    node.last_use_ = ++uses_;
}

void WorthOrder::remove(Node& node) {
    if (node.place_ != Node::kAside) take_out(node);
}

void WorthOrder::unhold(Node& node) {
    SLUICE_ASSERT(node.holds_ > 0);
    if (--node.holds_ > 0 || node.place_ != Node::kAside) return;
    heap_.push_back(&node);
    place(node, heap_.size() - 1);
    sift(node);
}

WorthOrder::Node* WorthOrder::take_next() {
    while (!heap_.empty()) {
        Node* const next = heap_.front();
        take_out(*next);
        if (next->held()) continue;
        age_ = std::max(age_, next->worth_);
        return next;
    }
    return nullptr;
}

// ---- The heap, whose nodes know where they are ----------------------------------------------------

bool WorthOrder::goes_before(const Node& left, const Node& right) {
    return std::pair(left.worth_, left.last_use_) < std::pair(right.worth_, right.last_use_);
}

void WorthOrder::place(Node& node, std::size_t at) {
    heap_[at] = &node;
    node.place_ = static_cast<std::uint32_t>(at);
}

void WorthOrder::sift(Node& node) {
    std::size_t at = node.place_;
    while (at > 0 && goes_before(node, *heap_[(at - 1) / 2])) {
        place(*heap_[(at - 1) / 2], at);
        at = (at - 1) / 2;
    }
    while (2 * at + 1 < heap_.size()) {
        std::size_t child = 2 * at + 1;
        if (child + 1 < heap_.size() && goes_before(*heap_[child + 1], *heap_[child])) ++child;
        if (!goes_before(*heap_[child], node)) break;
        place(*heap_[child], at);
        at = child;
    }
    place(node, at);
}

void WorthOrder::take_out(Node& node) {
    Node& last = *heap_.back();
    heap_.pop_back();
    const std::size_t at = std::exchange(node.place_, Node::kAside);
    if (&last != &node) {
        place(last, at);
        sift(last);
    }
    // What was once full of small entries isn't for ever.
    if (heap_.size() < heap_.capacity() / 8) heap_.shrink_to_fit();
}

}  // namespace sluice::kv
