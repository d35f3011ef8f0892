#include "routing/prefix_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/assert.h"

namespace sluice::routing {
namespace {

/// In a record's few: this seat's block is a guess.
constexpr std::uint16_t kGuessed = 0x8000;
constexpr std::uint16_t kSeatMask = 0x7FFF;

/// Workers that can be cleared while the traces of as many others are still about.
constexpr std::size_t kSpareSeats = 64;
/// A set with fewer members goes back into its record.
constexpr std::uint32_t kFewAgain = 2;
/// Blocks swept for each one that is stored or removed.
constexpr std::size_t kSweepSteps = 16;
/// Room for sets, per block; most blocks have few holders and no set.
constexpr std::size_t kSetBytesPerBlock = 32;

/// A prefill takes a minute at most where anybody waits for it.
constexpr Time::duration kGuessTime = std::chrono::seconds(120);
/// Different lengths that `match` tells apart.
constexpr int kLengthsMax = 32;
/// Blocks of a chain that are looked up together.
constexpr std::size_t kProbes = 16;
/// Blocks that are brought nearer ahead of the one at work.
constexpr std::size_t kAhead = 8;

void prefetch_ahead(const BlockTable& table, std::span<const BlockHash> blocks, std::size_t at) {
    if (at + kAhead < blocks.size()) table.prefetch(blocks[at + kAhead]);
}

bool has(std::span<const std::uint64_t> bits, std::size_t at) {
    return (bits[at / 64] >> (at % 64) & 1U) != 0;
}
void set(std::span<std::uint64_t> bits, std::size_t at) { bits[at / 64] |= 1ULL << (at % 64); }
void unset(std::span<std::uint64_t> bits, std::size_t at) { bits[at / 64] &= ~(1ULL << (at % 64)); }

}  // namespace

PrefixIndex::PrefixIndex(WorkerIndex workers_max, std::size_t blocks_max)
    : table_(blocks_max),
      sets_(std::max<std::size_t>(64 * 1024, blocks_max * kSetBytesPerBlock)),
      places_(workers_max + kSpareSeats),
      seats_(workers_max, kNoSeat),
      dirty_((places_.size() + 63) / 64),
      guesses_max_(std::max<std::size_t>(1, blocks_max / 4)) {
    SLUICE_ASSERT(places_.size() < kSeatMask);
    for (std::size_t seat = places_.size(); seat > 0; --seat)
        free_seats_.push_back(static_cast<Seat>(seat - 1));
}

// ---- Events ---------------------------------------------------------------------------------------

void PrefixIndex::stored(WorkerIndex worker, std::span<const BlockHash> blocks) {
    const Seat seat = seat_for(worker);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        prefetch_ahead(table_, blocks, i);
        put(seat, blocks[i], false);
    }
}

void PrefixIndex::removed(WorkerIndex worker, std::span<const BlockHash> blocks) {
    const Seat seat = seats_[worker];
    if (seat == kNoSeat) return;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        prefetch_ahead(table_, blocks, i);
        const Number number = table_.find(blocks[i]);
        if (number != BlockTable::kNone) take(number, seat, false);
        sweep(kSweepSteps);
    }
}

void PrefixIndex::cleared(WorkerIndex worker) {
    const Seat seat = std::exchange(seats_[worker], kNoSeat);
    if (seat == kNoSeat) return;
    places_[seat].worker = kNobody;
    if (places_[seat].blocks == 0) return free_seats_.push_back(seat);
    set(dirty_, seat);
    (hand_ == 0 ? dirty_now_ : dirty_next_).push_back(seat);
}

void PrefixIndex::expect(WorkerIndex worker, std::span<const BlockHash> blocks, Time now) {
    forget_old_guesses(now);
    const Seat seat = seat_for(worker);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        prefetch_ahead(table_, blocks, i);
        if (put(seat, blocks[i], true))
            guesses_.push_back({.until = now + kGuessTime, .hash = blocks[i], .seat = seat});
    }
}

PrefixIndex::Seat PrefixIndex::seat_for(WorkerIndex worker) {
    Seat& seat = seats_[worker];
    if (seat != kNoSeat) return seat;
    while (free_seats_.empty()) sweep(table_.numbers() + 1);
    seat = free_seats_.back();
    free_seats_.pop_back();
    places_[seat].worker = worker;
    sets_.widen(seat + std::size_t{1});
    return seat;
}

/// Whether the seat did not hold it before.
bool PrefixIndex::put(Seat seat, BlockHash hash, bool guess) {
    Number number = table_.find(hash);
    if (number == BlockTable::kNone) {
        if (table_.full()) evict_oldest();
        number = table_.insert(hash);
    } else {
        table_.touch(number);
    }
    const bool added = add(table_.at(number), seat, guess);
    sweep(kSweepSteps);
    return added;
}

void PrefixIndex::evict_oldest() {
    const Number number = table_.oldest();
    Block& block = table_.at(number);
    holders(block, others_);
    for (std::size_t word = 0; word < others_.size(); ++word)
        for (std::uint64_t bits = others_[word]; bits != 0; bits &= bits - 1)
            --places_[word * 64 + std::countr_zero(bits)].blocks;
    if (block.set != BlockTable::kNone) sets_.free(block.set);
    table_.erase(number);
}

void PrefixIndex::forget_old_guesses(Time now) {
    while (!guesses_.empty() && (guesses_.front().until <= now || guesses_.size() > guesses_max_)) {
        const Guess guess = guesses_.front();
        guesses_.pop_front();
        const Number number = table_.find(guess.hash);
        if (number != BlockTable::kNone) take(number, guess.seat, true);
    }
}

// ---- Who holds a block ----------------------------------------------------------------------------

bool PrefixIndex::add(Block& block, Seat seat, bool guess) {
    if (block.set != BlockTable::kNone) return add_to_set(block, seat, guess);
    for (std::uint16_t& each : std::span(block.few).first(block.count)) {
        if ((each & kSeatMask) != seat) continue;
        if (!guess) each = seat;
        return false;
    }
    // Without room for another set, one holder more or less is no matter.
    if (block.count == BlockTable::kFew) return make_set(block) && add_to_set(block, seat, guess);
    block.few[block.count++] = static_cast<std::uint16_t>(guess ? seat | kGuessed : seat);
    ++places_[seat].blocks;
    return true;
}

bool PrefixIndex::make_set(Block& block) {
    const auto number = sets_.add();
    if (!number) return false;
    for (const std::uint16_t each : block.few) {
        set(sets_.members(*number), each & kSeatMask);
        if ((each & kGuessed) != 0) set(sets_.expected(*number), each & kSeatMask);
    }
    block.set = *number;
    return true;
}

bool PrefixIndex::add_to_set(Block& block, Seat seat, bool guess) {
    const auto members = sets_.members(block.set);
    if (!guess) unset(sets_.expected(block.set), seat);
    if (has(members, seat)) return false;
    set(members, seat);
    if (guess) set(sets_.expected(block.set), seat);
    ++block.count;
    ++places_[seat].blocks;
    return true;
}

void PrefixIndex::take(Number number, Seat seat, bool only_guess) {
    Block& block = table_.at(number);
    if (block.set != BlockTable::kNone) {
        if (!take_from_set(block, seat, only_guess)) return;
    } else {
        const auto few = std::span(block.few).first(block.count);
        const auto found = std::ranges::find_if(
            few, [&](std::uint16_t each) { return (each & kSeatMask) == seat; });
        if (found == few.end() || (only_guess && (*found & kGuessed) == 0)) return;
        *found = few.back();
        --block.count;
    }
    --places_[seat].blocks;
    if (block.count == 0) table_.erase(number);
}

bool PrefixIndex::take_from_set(Block& block, Seat seat, bool only_guess) {
    const auto members = sets_.members(block.set);
    const auto expected = sets_.expected(block.set);
    if (!has(members, seat) || (only_guess && !has(expected, seat))) return false;
    unset(members, seat);
    unset(expected, seat);
    if (--block.count > kFewAgain) return true;
    std::size_t at = 0;
    for (std::size_t word = 0; word < members.size(); ++word) {
        for (std::uint64_t bits = members[word]; bits != 0; bits &= bits - 1) {
            const auto each = static_cast<Seat>(word * 64 + std::countr_zero(bits));
            block.few[at++] =
                static_cast<std::uint16_t>(has(expected, each) ? each | kGuessed : each);
        }
    }
    sets_.free(std::exchange(block.set, BlockTable::kNone));
    return true;
}

// ---- Sweeping -------------------------------------------------------------------------------------

void PrefixIndex::sweep(std::size_t steps) {
    for (; steps > 0 && !(dirty_now_.empty() && dirty_next_.empty()); --steps) {
        if (hand_ >= table_.numbers()) {
            end_round();
        } else {
            sweep_block(hand_++);
        }
    }
}

void PrefixIndex::end_round() {
    hand_ = 0;
    for (const Seat seat : dirty_now_) {
        SLUICE_ASSERT(places_[seat].blocks == 0);
        unset(dirty_, seat);
        free_seats_.push_back(seat);
    }
    dirty_now_ = std::exchange(dirty_next_, {});
}

void PrefixIndex::sweep_block(Number number) {
    if (table_.at(number).count == 0) return;
    holders(table_.at(number), others_);
    for (std::size_t word = 0; word < others_.size(); ++word) {
        const std::uint64_t dirty = word < dirty_.size() ? dirty_[word] : 0;
        for (std::uint64_t bits = others_[word] & dirty; bits != 0; bits &= bits - 1)
            take(number, static_cast<Seat>(word * 64 + std::countr_zero(bits)), false);
    }
}

// ---- Matching -------------------------------------------------------------------------------------

void PrefixIndex::holders(const Block& block, std::vector<std::uint64_t>& seats) const {
    if (block.set != BlockTable::kNone) {
        const auto members = sets_.members(block.set);
        seats.assign(members.begin(), members.end());
        return;
    }
    seats.assign(sets_.words(), 0);
    for (std::uint32_t i = 0; i < block.count; ++i) set(seats, block.few[i] & kSeatMask);
}

bool PrefixIndex::all_hold(BlockHash hash) const {
    const Number number = table_.find(hash);
    if (number == BlockTable::kNone) return false;
    const Block& block = table_.at(number);
    if (block.count < live_count_) return false;
    if (block.set == BlockTable::kNone) {
        const auto few = std::span(block.few).first(block.count);
        return std::ranges::count_if(few, [&](std::uint16_t each) {
                   return has(live_, each & kSeatMask);
               }) == live_count_;
    }
    const auto members = sets_.members(block.set);
    for (std::size_t word = 0; word < live_.size(); ++word)
        if ((live_[word] & ~members[word]) != 0) return false;
    return true;
}

bool PrefixIndex::any_holds(BlockHash hash) const {
    const Number number = table_.find(hash);
    if (number == BlockTable::kNone) return false;
    const Block& block = table_.at(number);
    if (block.set == BlockTable::kNone) {
        const auto few = std::span(block.few).first(block.count);
        return std::ranges::any_of(
            few, [&](std::uint16_t each) { return has(live_, each & kSeatMask); });
    }
    const auto members = sets_.members(block.set);
    for (std::size_t word = 0; word < live_.size(); ++word)
        if ((live_[word] & members[word]) != 0) return true;
    return false;
}

std::uint32_t PrefixIndex::held_by_any(std::span<const BlockHash> chain,
                                       std::span<const WorkerIndex> who,
                                       std::uint32_t extent) const {
    live_.assign(sets_.words(), 0);
    for (const WorkerIndex each : who)
        if (each < seats_.size() && seats_[each] != kNoSeat) set(live_, seats_[each]);
    const auto size = static_cast<std::uint32_t>(chain.size());
    for (std::uint32_t end = extent; end <= std::min<std::size_t>(size, kAhead * extent);
         end += extent)
        table_.prefetch(chain[end - 1]);
    std::uint32_t held = 0;
    std::uint32_t lost = 0;
    for (std::uint32_t begin = 0; begin < size && lost < kLostRuns; begin += extent) {
        const std::uint32_t end = std::min(begin + extent, size);
        if (end + kAhead * extent <= size) table_.prefetch(chain[end + kAhead * extent - 1]);
        const std::uint32_t before = held;
        if (any_holds(chain[end - 1])) {
            held += end - begin;
        } else {
            for (std::uint32_t at = begin; at + 1 < end && any_holds(chain[at]); ++at) ++held;
        }
        lost = held > before ? 0 : lost + 1;
    }
    return held;
}

bool PrefixIndex::surely_holds(Seat seat, BlockHash hash) const {
    const Number number = table_.find(hash);
    if (number == BlockTable::kNone) return false;
    const Block& block = table_.at(number);
    if (block.set != BlockTable::kNone)
        return has(sets_.members(block.set), seat) && !has(sets_.expected(block.set), seat);
    const auto few = std::span(block.few).first(block.count);
    return std::ranges::find(few, seat) != few.end();
}

std::uint32_t PrefixIndex::confirmed(WorkerIndex worker, std::span<const BlockHash> blocks) const {
    const Seat seat = seats_[worker];
    if (seat == kNoSeat || blocks.empty()) return 0;
    if (surely_holds(seat, blocks.back())) return static_cast<std::uint32_t>(blocks.size());
    const auto end = std::ranges::partition_point(
        blocks, [&](BlockHash each) { return surely_holds(seat, each); });
    return static_cast<std::uint32_t>(end - blocks.begin());
}

void PrefixIndex::count_live() const {
    live_count_ = 0;
    for (const std::uint64_t word : live_)
        live_count_ += static_cast<std::uint32_t>(std::popcount(word));
}

/// Leaves those that hold this block, too.
void PrefixIndex::narrow(BlockHash hash) const {
    const Number number = table_.find(hash);
    if (number == BlockTable::kNone) {
        std::ranges::fill(live_, 0);
    } else {
        holders(table_.at(number), others_);
        for (std::size_t word = 0; word < live_.size(); ++word) live_[word] &= others_[word];
    }
    count_live();
}

void PrefixIndex::match(std::span<const BlockHash> chain, Matches& out) const {
    out.index_ = this;
    out.lengths_.clear();
    out.seats_.clear();
    out.words_ = sets_.words();
    if (chain.empty()) return;
    table_.prefetch(chain.front());
    table_.prefetch(chain.back());
    table_.prefetch_block(chain.back());
    const Number first = table_.find(chain.front());
    if (first == BlockTable::kNone) return;
    holders(table_.at(first), live_);
    for (std::size_t word = 0; word < live_.size() && word < dirty_.size(); ++word)
        live_[word] &= ~dirty_[word];
    count_live();
    const auto length = static_cast<std::uint32_t>(chain.size());
    std::uint32_t depth = 1;
    for (int lengths = 0; lengths < kLengthsMax && depth < length; ++lengths) {
        depth = first_lacking(chain, depth);
        if (depth == length) break;
        out.add(depth, live_);
        narrow(chain[depth]);
        if (live_count_ == 0) return;
        ++depth;
    }
    out.add(depth, live_);
}

std::uint32_t PrefixIndex::first_lacking(std::span<const BlockHash> chain,
                                         std::uint32_t depth) const {
    auto to = static_cast<std::uint32_t>(chain.size());
    // Many have all of it or nothing, and its end is near since the last look.
    if (all_hold(chain.back())) return to;
    // All hold what is before `from`; somebody lacks `to`, or it is the end. Most of the time goes into
    // waiting for memory, so what is looked at next is brought nearer together.
    std::uint32_t from = depth;
    --to;
    while (from < to) {
        std::array<std::uint32_t, kProbes> probes{};
        std::size_t count = 0;
        const std::uint32_t leap = std::max<std::uint32_t>(1, (to - from) / (kProbes + 1));
        for (std::uint32_t next = from; count < kProbes && next + leap <= to; next += leap)
            probes[count++] = next + leap - 1;
        const auto looked_at = std::span(probes).first(count);
        for (const std::uint32_t probe : looked_at) table_.prefetch(chain[probe]);
        for (const std::uint32_t probe : looked_at) table_.prefetch_block(chain[probe]);
        for (const std::uint32_t probe : looked_at) {
            if (!all_hold(chain[probe])) {
                to = probe;
                break;
            }
            from = probe + 1;
        }
    }
    return from;
}

void PrefixIndex::Matches::add(std::uint32_t length, std::span<const std::uint64_t> seats) {
    lengths_.push_back(length);
    seats_.insert(seats_.end(), seats.begin(), seats.end());
}

std::uint64_t PrefixIndex::Matches::word(std::size_t level, std::size_t at) const {
    return seats_[level * words_ + at];
}

std::uint32_t PrefixIndex::Matches::blocks(WorkerIndex worker) const {
    if (empty()) return 0;
    const Seat seat = index_->seats_[worker];
    if (seat / 64U >= words_) return 0;
    for (std::size_t level = lengths_.size(); level > 0; --level)
        if ((word(level - 1, seat / 64U) >> (seat % 64U) & 1U) != 0) return lengths_[level - 1];
    return 0;
}

void PrefixIndex::Matches::longest(std::size_t count, std::uint64_t drawn,
                                   std::vector<WorkerIndex>& out) const {
    for (std::size_t level = lengths_.size(); level > 0; --level) {
        for (std::size_t i = 0; i < words_; ++i) {
            const std::size_t at = (drawn + i) % words_;
            std::uint64_t bits = word(level - 1, at);
            if (level < lengths_.size()) bits &= ~word(level, at);
            for (; bits != 0; bits &= bits - 1) {
                if (count-- == 0) return;
                out.push_back(index_->places_[at * 64 + std::countr_zero(bits)].worker);
            }
        }
    }
}

std::vector<PrefixIndex::Match> PrefixIndex::Matches::list() const {
    std::vector<WorkerIndex> workers;
    longest(SIZE_MAX, 0, workers);
    std::vector<Match> all;
    for (auto each = workers.rbegin(); each != workers.rend(); ++each)
        all.push_back({.worker = *each, .blocks = blocks(*each)});
    return all;
}

std::uint64_t PrefixIndex::held_by(WorkerIndex worker) const {
    const Seat seat = seats_[worker];
    return seat == kNoSeat ? 0 : places_[seat].blocks;
}

std::size_t PrefixIndex::memory_bytes() const {
    return table_.memory_bytes() + sets_.memory_bytes() + guesses_.size() * sizeof(Guess) +
           places_.size() * sizeof(Place);
}

}  // namespace sluice::routing
