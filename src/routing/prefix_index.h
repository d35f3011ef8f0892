#pragma once

// Which workers hold which blocks of whose prompts: learned from the workers' own events, and guessed
// from what was just sent to them.
//
// All of it is a hint. A block that is not where it was thought to be is computed again; so holes
// inside a chain are not looked for, and what does not fit is forgotten, the blocks untouched for
// longest first. Saying the same thing twice changes nothing. A guess that no event confirms is
// forgotten after a while.
//
// Forgetting all of a worker takes no time: it gets a new seat, and the old one's traces are swept
// out bit by bit, along with other work.
//
// Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/limits.h"
#include "routing/block_table.h"
#include "routing/demand.h"
#include "routing/seat_sets.h"
#include "routing/time.h"

namespace sluice::routing {

class PrefixIndex {
public:
    explicit PrefixIndex(WorkerIndex workers_max,
                         std::size_t blocks_max = limits::kPrefixIndexBlocks);

    /// Blocks in a row that a cache node has of a chain (kv::kExtentBlocks).
    static constexpr std::uint32_t kExtent = 16;

    void stored(WorkerIndex worker, std::span<const BlockHash> blocks);
    void removed(WorkerIndex worker, std::span<const BlockHash> blocks);
    void cleared(WorkerIndex worker);
    /// It will hold them soon: a guess, until `stored` says so, or until it is too old.
    void expect(WorkerIndex worker, std::span<const BlockHash> blocks, Time now);

    struct Match {
        WorkerIndex worker = 0;
        std::uint32_t blocks = 0;  ///< Of the chain, from its first on.
    };
    /// Who holds how much of a chain. Valid until the index changes.
    class Matches {
    public:
        [[nodiscard]] bool empty() const { return lengths_.empty(); }
        /// Of the chain that `worker` holds, from its first on.
        [[nodiscard]] std::uint32_t blocks(WorkerIndex worker) const;
        /// Appends up to `count` workers, those that hold the most first; of many equals some, by
        /// what was drawn.
        void longest(std::size_t count, std::uint64_t drawn, std::vector<WorkerIndex>& out) const;
        /// All of them, the longest last.
        [[nodiscard]] std::vector<Match> list() const;

    private:
        friend class PrefixIndex;
        void add(std::uint32_t length, std::span<const std::uint64_t> seats);
        [[nodiscard]] std::uint64_t word(std::size_t level, std::size_t at) const;

        const PrefixIndex* index_ = nullptr;
        std::vector<std::uint32_t> lengths_;  ///< Ever longer.
        std::vector<std::uint64_t> seats_;    ///< For each length, who holds as much or more.
        std::size_t words_ = 0;
    };
    /// Nobody who holds nothing. Only so many different lengths are told apart; what is longer than
    /// the last of them counts as that.
    void match(std::span<const BlockHash> chain, Matches& out) const;

    /// How many of `blocks`, the first of a chain, the worker itself has said it holds. Guesses come
    /// after what it said: what it was sent goes on from what it had.
    [[nodiscard]] std::uint32_t confirmed(WorkerIndex worker,
                                          std::span<const BlockHash> blocks) const;

    /// How many blocks of the chain lie with `holders` taken together, of which there is one at least.
    /// Runs of `extent` blocks lie with one holder, who gives up their ends first: so the last one of a
    /// run speaks for all of it. Where one holder is lost its runs are missing, and those of others
    /// behind them are there all the same; after kLostRuns in a row nothing more is looked for.
    [[nodiscard]] std::uint32_t held_by_any(std::span<const BlockHash> chain,
                                            std::span<const WorkerIndex> holders,
                                            std::uint32_t extent = kExtent) const;
    static constexpr std::uint32_t kLostRuns = 4;

    [[nodiscard]] std::size_t blocks() const { return table_.size(); }
    /// Blocks that a worker holds, guesses included.
    [[nodiscard]] std::uint64_t held_by(WorkerIndex worker) const;
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    using Number = BlockTable::Number;
    using Block = BlockTable::Block;
    using Seat = std::uint16_t;

    struct Guess {
        Time until;
        BlockHash hash = 0;
        Seat seat = 0;
    };
    struct Place {
        WorkerIndex worker = kNobody;
        std::uint64_t blocks = 0;
    };
    static constexpr WorkerIndex kNobody = UINT32_MAX;
    static constexpr Seat kNoSeat = UINT16_MAX;

    [[nodiscard]] Seat seat_for(WorkerIndex worker);
    bool put(Seat seat, BlockHash hash, bool guess);
    [[nodiscard]] bool add(Block& block, Seat seat, bool guess);
    [[nodiscard]] bool add_to_set(Block& block, Seat seat, bool guess);
    [[nodiscard]] bool make_set(Block& block);
    void take(Number number, Seat seat, bool only_guess);
    [[nodiscard]] bool take_from_set(Block& block, Seat seat, bool only_guess);
    void evict_oldest();
    void forget_old_guesses(Time now);

    void sweep(std::size_t steps);
    void sweep_block(Number number);
    void end_round();

    void holders(const Block& block, std::vector<std::uint64_t>& seats) const;
    [[nodiscard]] bool all_hold(BlockHash hash) const;
    void count_live() const;
    [[nodiscard]] bool any_holds(BlockHash hash) const;
    [[nodiscard]] bool surely_holds(Seat seat, BlockHash hash) const;
    [[nodiscard]] std::uint32_t first_lacking(std::span<const BlockHash> chain,
                                              std::uint32_t depth) const;
    void narrow(BlockHash hash) const;

    BlockTable table_;
    SeatSets sets_;
    std::vector<Place> places_;         ///< By seat.
    std::vector<Seat> seats_;           ///< By worker.
    std::vector<Seat> free_seats_;      ///< The lowest last.
    std::vector<std::uint64_t> dirty_;  ///< Seats whose traces are being swept out.
    std::vector<Seat> dirty_now_;       ///< Clean at the end of this round.
    std::vector<Seat> dirty_next_;      ///< Left in the middle of it: at the end of the next.
    Number hand_ = 0;
    std::deque<Guess> guesses_;  ///< The oldest first.
    std::size_t guesses_max_;

    // Scratch of `match`.
    mutable std::vector<std::uint64_t> live_;  ///< Who holds all that was looked at.
    mutable std::uint32_t live_count_ = 0;
    mutable std::vector<std::uint64_t> others_;
};

}  // namespace sluice::routing
