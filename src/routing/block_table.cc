#include "routing/block_table.h"

#include "base/assert.h"

namespace sluice::routing {
namespace {

constexpr int kFirstBits = 10;

std::uint32_t tag_of(BlockHash hash) { return static_cast<std::uint32_t>(hash); }

}  // namespace

BlockTable::BlockTable(std::size_t blocks_max)
    : blocks_max_(blocks_max), slots_(std::size_t{1} << kFirstBits), shift_(64 - kFirstBits) {
    SLUICE_ASSERT(blocks_max > 0 && blocks_max < (std::size_t{1} << 31));
}

BlockTable::Number BlockTable::find(BlockHash hash) const {
    const std::size_t mask = slots_.size() - 1;
    const std::uint32_t tag = tag_of(hash);
    for (std::size_t at = home(hash); slots_[at].number != kNone; at = (at + 1) & mask) {
        const Slot& slot = slots_[at];
        if (slot.tag == tag && blocks_[slot.number].hash == hash) return slot.number;
    }
    return kNone;
}

BlockTable::Number BlockTable::insert(BlockHash hash) {
    SLUICE_ASSERT(!full());
    if ((size_ + 1) * 2 > slots_.size()) grow();
    Number number = numbers();
    if (free_.empty()) {
        blocks_.emplace_back();
    } else {
        number = free_.back();
        free_.pop_back();
    }
    blocks_[number] = {.hash = hash};
    put(number);
    link_newest(number);
    ++size_;
    return number;
}

void BlockTable::put(Number number) {
    const std::size_t mask = slots_.size() - 1;
    const BlockHash hash = blocks_[number].hash;
    std::size_t at = home(hash);
    while (slots_[at].number != kNone) at = (at + 1) & mask;
    slots_[at] = {.tag = tag_of(hash), .number = number};
}

void BlockTable::grow() {
    decltype(slots_) old(slots_.size() * 2);
    old.swap(slots_);
    --shift_;
    for (const Slot& slot : old)
        if (slot.number != kNone) put(slot.number);
}

std::size_t BlockTable::slot_of(Number number) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = home(blocks_[number].hash);
    while (slots_[at].number != number) at = (at + 1) & mask;
    return at;
}

void BlockTable::erase(Number number) {
    unlink(number);
    const std::size_t mask = slots_.size() - 1;
    std::size_t hole = slot_of(number);
    // Who stands behind the hole because its own place was taken moves up: no marks of the dead.
    for (std::size_t at = (hole + 1) & mask; slots_[at].number != kNone; at = (at + 1) & mask) {
        const std::size_t wanted = home(blocks_[slots_[at].number].hash);
        if (((at - wanted) & mask) < ((at - hole) & mask)) continue;
        slots_[hole] = slots_[at];
        hole = at;
    }
    slots_[hole] = {};
    blocks_[number] = {};
    free_.push_back(number);
    --size_;
}

void BlockTable::touch(Number number) {
    if (number == newest_) return;
    unlink(number);
    link_newest(number);
}

void BlockTable::unlink(Number number) {
    const Block& block = blocks_[number];
    (block.older == kNone ? oldest_ : blocks_[block.older].newer) = block.newer;
    (block.newer == kNone ? newest_ : blocks_[block.newer].older) = block.older;
}

void BlockTable::link_newest(Number number) {
    Block& block = blocks_[number];
    block.older = newest_;
    block.newer = kNone;
    (newest_ == kNone ? oldest_ : blocks_[newest_].newer) = number;
    newest_ = number;
}

std::size_t BlockTable::memory_bytes() const {
    return blocks_.capacity() * sizeof(Block) + free_.capacity() * sizeof(Number) +
           slots_.capacity() * sizeof(Slot);
}

}  // namespace sluice::routing
