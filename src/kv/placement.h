#pragma once

// Which cache nodes keep a block. Sixteen blocks of a chain in a row are an extent and lie on one
// node, so that a prompt is read in few pipelined trips, and no node holds all of a conversation.
//
// Every node gets a score for every extent (rendezvous hashing), and the highest ones own it: a node
// that joins takes its share evenly from all others, one that leaves leaves its own behind, and
// nothing else moves. Memberships are numbered by epochs. Owners of earlier epochs are remembered, so
// that what has moved is still found where it was written and can be pulled over.
//
// Pure: no sockets, no clock. Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "kv/block_key.h"

namespace sluice::kv {

inline constexpr std::size_t kExtentBlocks = 16;

/// The block whose key names the extent of block `index` of the same chain.
[[nodiscard]] constexpr std::size_t extent_start(std::size_t index) {
    return index - index % kExtentBlocks;
}

class Placement {
public:
    /// Every extent is kept by `replicas` nodes, at least one, or by all if there are fewer.
    explicit Placement(std::size_t replicas = 1);

    /// From now on these nodes are there. The order of the names doesn't matter, names that occur
    /// twice count once. False, and nothing changes, if `epoch` is not above the present one.
    [[nodiscard]] bool set_members(std::uint64_t epoch, std::vector<std::string> members);

    /// 0 before the first membership.
    [[nodiscard]] std::uint64_t epoch() const;
    /// Of the present epoch, sorted.
    [[nodiscard]] const std::vector<std::string>& members() const;

    /// The nodes that keep the extent named `extent`, as indexes into `members()`, the first owner
    /// first. Empty without members.
    [[nodiscard]] std::vector<std::size_t> owners(const BlockKey& extent) const;

    /// Members that may still have the extent because they owned it in an earlier epoch, and own it
    /// no more: latest epoch first, each once. Who has left is no member and not among them.
    [[nodiscard]] std::vector<std::size_t> previous_owners(const BlockKey& extent) const;

    /// The part of all extents whose first owner is not the one of the epoch before: 0 to 1, and 0
    /// if there was none before.
    [[nodiscard]] double moved_share() const;

private:
    struct Epoch {
        std::uint64_t number = 0;
        std::vector<std::string> names;     ///< Sorted.
        std::vector<std::uint64_t> hashes;  ///< Of the names.
    };

    [[nodiscard]] std::vector<std::size_t> owners_in(const Epoch& epoch,
                                                     const BlockKey& extent) const;

    std::size_t replicas_;
    std::deque<Epoch> epochs_;  ///< The present one first; at most limits::kKvEpochsKept.
};

}  // namespace sluice::kv
