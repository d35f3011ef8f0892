#pragma once

// Sets of small numbers, many and alike, in one piece of memory: which workers hold a block, where
// more do than a record has room for. Each has two layers, of which the second is a part of the
// first: who is only expected to.
//
// Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sluice::routing {

class SeatSets {
public:
    using Number = std::uint32_t;

    explicit SeatSets(std::size_t bytes_max) : bytes_max_(bytes_max) {}

    /// Sets can have members below `seats` from now on.
    void widen(std::size_t seats);
    [[nodiscard]] std::size_t words() const { return words_; }

    /// An empty set; nullopt if there is no room for another.
    [[nodiscard]] std::optional<Number> add();
    void free(Number set);

    [[nodiscard]] std::span<std::uint64_t> members(Number set) {
        return std::span(bits_).subspan(std::size_t{set} * 2 * words_, words_);
    }
    [[nodiscard]] std::span<const std::uint64_t> members(Number set) const {
        return std::span(bits_).subspan(std::size_t{set} * 2 * words_, words_);
    }
    [[nodiscard]] std::span<std::uint64_t> expected(Number set) {
        return std::span(bits_).subspan((std::size_t{set} * 2 + 1) * words_, words_);
    }

    [[nodiscard]] std::span<const std::uint64_t> expected(Number set) const {
        return std::span(bits_).subspan((std::size_t{set} * 2 + 1) * words_, words_);
    }

    [[nodiscard]] std::size_t memory_bytes() const {
        return bits_.capacity() * sizeof(std::uint64_t) + free_.capacity() * sizeof(Number);
    }

private:
    std::size_t bytes_max_;
    std::size_t words_ = 1;  ///< Of one layer.
    std::vector<std::uint64_t> bits_;
    std::vector<Number> free_;
};

}  // namespace sluice::routing
