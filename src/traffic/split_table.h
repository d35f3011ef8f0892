#pragma once

// Which pool a conversation belongs to. A conversation has a place between 0 and 1 that only its key
// and the plan's salt decide, and each split owns a part of that line, so a conversation stays where
// it is for as long as the weights do.
//
// Parts are laid out so that a weight that grows takes conversations from the stable pool and from no
// other split, and gives them back there when it shrinks: each split starts at a point of its own
// (0, 1/2, 1/4, 3/4, 1/8, ..., in the order of the plan) and grows up to the next; what doesn't fit
// there comes from the top of what is free. Only where several splits overflow at once can one move
// another's overflow.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "traffic/plan.h"

namespace sluice::traffic {

/// Where on the line, in millionths. `use` keeps draws of one conversation apart from each other.
[[nodiscard]] std::uint32_t place_of(std::string_view conversation, std::string_view salt,
                                     std::string_view use);

class SplitTable {
public:
    static constexpr std::uint32_t kUnits = 1'000'000;

    SplitTable() = default;
    explicit SplitTable(const std::vector<Split>& splits);

    /// Index of the split that owns the place; nullopt is the stable pool.
    [[nodiscard]] std::optional<std::size_t> owner(std::uint32_t place) const;

private:
    struct Part {
        std::uint32_t begin = 0;
        std::uint32_t end = 0;  ///< Exclusive.
        std::size_t split = 0;
    };

    void give(std::uint32_t begin, std::uint32_t end, std::size_t split);
    /// Gives the topmost free units to `split`.
    void overflow(std::uint32_t units, std::size_t split);

    std::vector<Part> parts_;  ///< Ascending, apart from each other.
};

}  // namespace sluice::traffic
