#include "sim/s3_fifo_order.h"

#include <algorithm>

namespace sluice::sim {

void S3FifoOrder::add(Node& node, std::uint64_t id) {
    node.id = id;
    node.main = gone_numbers_.erase(id) > 0;
    ++entries_;
    queue(node);
}

void S3FifoOrder::queue(Node& node) {
    queue_of(node).push_back(node);
    node.queued = true;
}

void S3FifoOrder::use(Node& node) { node.uses = std::min<std::uint8_t>(node.uses + 1, kUsesMost); }

void S3FifoOrder::unhold(Node& node) {
    if (--node.holds > 0 || node.queued) return;
    queue_of(node).push_front(node);
    node.queued = true;
}

S3FifoOrder::Node* S3FifoOrder::take_next() {
    while (!small_.empty() || !main_.empty()) {
        const bool small = main_.empty() || small_.size() > entries_ / kSmallPart;
        if (Node* const next = small ? take_small() : take_main(); next != nullptr) {
            --entries_;
            return next;
        }
    }
    return nullptr;
}

/// Null if the next of the queue stays.
S3FifoOrder::Node* S3FifoOrder::take_small() {
    Node& next = *small_.front();
    small_.erase(next);
    next.queued = false;
    if (next.uses > 0) {
        next.uses = 0;
        next.main = true;
        queue(next);
        return nullptr;
    }
    if (next.holds > 0) return nullptr;
    remember(next.id);
    return &next;
}

S3FifoOrder::Node* S3FifoOrder::take_main() {
    Node& next = *main_.front();
    main_.erase(next);
    next.queued = false;
    if (next.uses > 0) {
        --next.uses;
        queue(next);
        return nullptr;
    }
    return next.holds > 0 ? nullptr : &next;
}

/// As many as there are entries.
void S3FifoOrder::remember(std::uint64_t id) {
    gone_.push_back({.id = id, .number = ++gone_count_});
    gone_numbers_.insert_or_assign(id, gone_count_);
    while (gone_.size() > entries_) {
        const auto at = gone_numbers_.find(gone_.front().id);
        if (at != gone_numbers_.end() && at->second == gone_.front().number)
            gone_numbers_.erase(at);
        gone_.pop_front();
    }
}

}  // namespace sluice::sim
