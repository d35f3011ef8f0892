#pragma once

// Blocks by their hash, no more than a given number; the one not touched for longest makes room for a
// new one. Records stay where they are, so that others may keep their numbers.
//
// Not thread-safe.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/huge_allocator.h"
#include "routing/demand.h"

namespace sluice::routing {

class BlockTable {
public:
    using Number = std::uint32_t;
    static constexpr Number kNone = UINT32_MAX;
    static constexpr std::size_t kFew = 4;

    /// Half a cache line.
    struct Block {
        BlockHash hash = 0;
        Number older = kNone;
        Number newer = kNone;
        /// The owner's: a few numbers, or one of something larger.
        std::array<std::uint16_t, kFew> few{};
        std::uint32_t set = kNone;
        std::uint32_t count = 0;
    };

    /// `blocks_max` is at least 1 and below 2^31.
    explicit BlockTable(std::size_t blocks_max);

    /// kNone if it is not there.
    [[nodiscard]] Number find(BlockHash hash) const;
    /// Brings what `find` will look at for `hash` nearer.
    void prefetch(BlockHash hash) const { __builtin_prefetch(&slots_[home(hash)]); }
    /// Then the block itself, if it stands at its first place, as most do.
    void prefetch_block(BlockHash hash) const {
        const Slot& slot = slots_[home(hash)];
        if (slot.number != kNone) __builtin_prefetch(&blocks_[slot.number]);
    }
    [[nodiscard]] Block& at(Number number) { return blocks_[number]; }
    [[nodiscard]] const Block& at(Number number) const { return blocks_[number]; }

    /// A new block, as the one touched last. It is not there yet, and the table is not full.
    Number insert(BlockHash hash);
    void erase(Number number);
    void touch(Number number);

    [[nodiscard]] bool full() const { return size_ == blocks_max_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    /// Touched longest ago; kNone if there is none.
    [[nodiscard]] Number oldest() const { return oldest_; }
    /// Numbers below this may be blocks; those that are none have a count of 0.
    [[nodiscard]] Number numbers() const { return static_cast<Number>(blocks_.size()); }
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    struct Slot {
        std::uint32_t tag = 0;  ///< Of the hash, so that most others are told apart without a look.
        Number number = kNone;
    };

    [[nodiscard]] std::size_t home(BlockHash hash) const {
        return (hash * 0x9E37'79B9'7F4A'7C15ULL) >> shift_;
    }
    [[nodiscard]] std::size_t slot_of(Number number) const;
    void put(Number number);
    void grow();
    void unlink(Number number);
    void link_newest(Number number);

    std::size_t blocks_max_;
    std::size_t size_ = 0;
    std::vector<Block, HugeAllocator<Block>> blocks_;
    std::vector<Number> free_;
    /// A power of two, at most half of them taken; probed in a row.
    std::vector<Slot, HugeAllocator<Slot>> slots_;
    int shift_ = 0;  ///< 64 less the bits of a slot's index.
    Number oldest_ = kNone;
    Number newest_ = kNone;
};

}  // namespace sluice::routing
