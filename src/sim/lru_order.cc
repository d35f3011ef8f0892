#include "sim/lru_order.h"

namespace sluice::sim {

void LruOrder::add(Node& node, std::uint64_t /*id*/) {
    queue_.push_back(node);
    node.queued = true;
}

void LruOrder::use(Node& node) {
    if (node.queued) queue_.erase(node);
    queue_.push_back(node);
    node.queued = true;
}

void LruOrder::unhold(Node& node) {
    if (--node.holds > 0 || node.queued) return;
    queue_.push_front(node);
    node.queued = true;
}

LruOrder::Node* LruOrder::take_next() {
    while (Node* const next = queue_.front()) {
        queue_.erase(*next);
        next->queued = false;
        if (next->holds == 0) return next;
    }
    return nullptr;
}

}  // namespace sluice::sim
