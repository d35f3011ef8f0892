#pragma once

// Least recently used first: what kv::WorthOrder is compared with. Holds are treated as there.

#include <cstdint>

#include "sim/node_list.h"

namespace sluice::sim {

class LruOrder {
public:
    struct Node {
        Node* before = nullptr;
        Node* after = nullptr;
        std::uint32_t holds = 0;
        bool queued = false;  ///< Not set aside.
    };

    void add(Node& node, std::uint64_t id);
    void use(Node& node);
    void hold(Node& node) { ++node.holds; }
    void unhold(Node& node);
    [[nodiscard]] Node* take_next();

private:
    NodeList<Node> queue_;  ///< The next to go first.
};

}  // namespace sluice::sim
