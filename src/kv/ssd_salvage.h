#pragma once

// What of a segment is worth being written again when it makes room: what was used, and what something
// in other segments follows, because that is of no use without it; and, of both, what they themselves
// follow. So chains go from their tails.
//
// Under the lock of the index; looks at one segment's entries.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "kv/ssd_index.h"

namespace sluice::kv {

class SsdSalvage {
public:
    struct Bounds {
        std::uint64_t bytes = UINT64_MAX;           ///< Of all.
        std::uint64_t followed_bytes = UINT64_MAX;  ///< Of what wasn't used.
    };
    using IsOver = FunctionRef<bool(const SsdIndex::Entry&)>;

    /// What fits into the bounds, the used before the unused and the first written first; nothing
    /// without what it follows. `is_over`: it ends anyway.
    SsdSalvage(SsdIndex& index, SsdIndex::Segment& segment, const Bounds& bounds, IsOver is_over);

    /// Ascending, and so parents before what follows them, as they were written.
    [[nodiscard]] const std::vector<std::uint32_t>& slots() const { return slots_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    /// Of these, what wasn't used.
    [[nodiscard]] std::uint64_t followed_bytes() const { return followed_bytes_; }

private:
    /// With what it follows in the segment, if that stays below `most`.
    void keep(std::uint32_t slot, std::uint64_t most);

    SsdIndex::Segment& segment_;
    std::unordered_map<std::uint64_t, std::uint32_t> by_kin_;
    std::vector<bool> kept_;  ///< By slot.
    std::vector<std::uint32_t> slots_;
    std::uint64_t bytes_ = 0;
    std::uint64_t followed_bytes_ = 0;
};

}  // namespace sluice::kv
