#pragma once

// A list whose links lie in what it lists: the queues of eviction orders.

#include <cstddef>

namespace sluice::sim {

template <class Node>
class NodeList {
public:
    [[nodiscard]] bool empty() const { return first_ == nullptr; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] Node* front() const { return first_; }

    void push_front(Node& node) { link(node, nullptr, first_); }
    void push_back(Node& node) { link(node, last_, nullptr); }
    void erase(Node& node) {
        (node.before == nullptr ? first_ : node.before->after) = node.after;
        (node.after == nullptr ? last_ : node.after->before) = node.before;
        node.before = node.after = nullptr;
        --size_;
    }

private:
    void link(Node& node, Node* before, Node* after) {
        node.before = before;
        node.after = after;
        (before == nullptr ? first_ : before->after) = &node;
        (after == nullptr ? last_ : after->before) = &node;
        ++size_;
    }

    Node* first_ = nullptr;
    Node* last_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace sluice::sim
