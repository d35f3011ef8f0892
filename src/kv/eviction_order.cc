#include "kv/eviction_order.h"

#include "base/assert.h"

namespace sluice::kv {

void EvictionOrder::touch(EvictionNode& node) {
    if (node.queued) unlink(node);
    link_before(node, ends_);
}

void EvictionOrder::remove(EvictionNode& node) {
    if (node.queued) unlink(node);
}

void EvictionOrder::unhold(EvictionNode& node) {
    SLUICE_ASSERT(node.holds > 0);
    if (--node.holds == 0 && !node.queued) link_before(node, *ends_.warmer);
}

EvictionNode* EvictionOrder::coldest() {
    while (ends_.warmer != &ends_) {
        EvictionNode* const node = ends_.warmer;
        if (node->holds == 0) return node;
        unlink(*node);
    }
    return nullptr;
}

void EvictionOrder::unlink(EvictionNode& node) {
    node.colder->warmer = node.warmer;
    node.warmer->colder = node.colder;
    node.queued = false;
}

/// Right before `place` on the way from cold to warm.
void EvictionOrder::link_before(EvictionNode& node, EvictionNode& place) {
    node.warmer = &place;
    node.colder = place.colder;
    place.colder->warmer = &node;
    place.colder = &node;
    node.queued = true;
}

}  // namespace sluice::kv
