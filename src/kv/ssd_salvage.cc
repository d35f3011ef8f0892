#include "kv/ssd_salvage.h"

#include <algorithm>

namespace sluice::kv {

SsdSalvage::SsdSalvage(SsdIndex& index, SsdIndex::Segment& segment, const Bounds& bounds,
                       IsOver is_over)
    : segment_(segment), kept_(segment.entries.size()) {
    std::vector<std::uint32_t> used;
    std::vector<std::uint32_t> followed;
    for (std::uint32_t slot = 0; slot < segment.entries.size(); ++slot) {
        const SsdIndex::Entry& entry = segment.entries[slot];
        if (entry.name == nullptr || is_over(entry)) continue;
        const std::uint64_t kin = ssd_kin(*entry.name);
        by_kin_.emplace(kin, slot);
        if (entry.used) {
            used.push_back(slot);
        } else if (index.is_followed_outside(kin, segment.header.number)) {
            followed.push_back(slot);
        }
    }
    for (const std::uint32_t slot : used) keep(slot, bounds.bytes);
    const std::uint64_t used_bytes = bytes_;
    const std::uint64_t most = bounds.followed_bytes < bounds.bytes - used_bytes
                                   ? used_bytes + bounds.followed_bytes
                                   : bounds.bytes;
    for (const std::uint32_t slot : followed) keep(slot, most);
    followed_bytes_ = bytes_ - used_bytes;
    std::ranges::sort(slots_);
}

void SsdSalvage::keep(std::uint32_t slot, std::uint64_t most) {
    std::vector<std::uint32_t> chain;
    std::uint64_t bytes = 0;
    for (std::uint32_t each = slot; !kept_[each];) {
        kept_[each] = true;
        chain.push_back(each);
        bytes += SsdIndex::Place{.segment = &segment_, .slot = each}.bytes();
        const auto parent = by_kin_.find(segment_.entries[each].parent);
        if (parent == by_kin_.end()) break;
        each = parent->second;
    }
    if (bytes_ + bytes <= most) {
        bytes_ += bytes;
        slots_.insert(slots_.end(), chain.begin(), chain.end());
    } else {
        for (const std::uint32_t each : chain) kept_[each] = false;
    }
}

}  // namespace sluice::kv
