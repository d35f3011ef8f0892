// Registry's choice; the rest of it is in registry.cc.

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "routing/registry.h"

namespace sluice::routing {
namespace {

/// Up to this many members a choice looks at all.
constexpr std::size_t kLookAtAll = 128;
/// Of more, at so many drawn at random, and at so many that hold the most of the prompt.
constexpr std::size_t kDrawn = 32;
constexpr std::size_t kHolders = 8;
/// As a source for others, at so many that hold the most.
constexpr std::size_t kLenders = 8;

/// Work from which on a worker's own speed is known at all,
constexpr double kSpeedLeastWork = 1'000.0;
/// and the factor within which it is its pool's: equals are to be equal.
constexpr double kSameSpeed = 1.5;
constexpr double kSlowest = 1'000.0;

/// Which kinds of workers run a phase: its own, then who stands in.
constexpr std::array<std::array<LegPhase, kLegPhases>, kLegPhases> kKinds{{
    {LegPhase::kFull, LegPhase::kDecode, LegPhase::kPrefill, LegPhase::kEncode},
    {LegPhase::kEncode, LegPhase::kFull, LegPhase::kPrefill, LegPhase::kDecode},
    {LegPhase::kPrefill, LegPhase::kFull, LegPhase::kDecode, LegPhase::kEncode},
    {LegPhase::kDecode, LegPhase::kFull, LegPhase::kPrefill, LegPhase::kEncode},
}};

struct Best {
    WorkerIndex worker = 0;
    double turn = 0.0;
    std::uint64_t picked_at = 0;
    std::uint64_t matched_tokens = 0;
    std::uint64_t waiting_tokens = 0;  ///< Of prompts, before this one.
    Score score;

    [[nodiscard]] auto rank() const { return std::tuple(score.value, turn, picked_at, worker); }
};

void keep_better(std::optional<Best>& best, const Best& other) {
    if (!best || other.rank() < best->rank()) best = other;
}

}  // namespace

/// One choice in the making.
struct Registry::Search {
    const Demand& demand;
    const Tried& tried;
    Time now;
    PoolState& pool;
    std::uint32_t stored_blocks = 0;  ///< Of the prompt, that stores hold.
    std::optional<Peer> peer{};       ///< Who has more of it than they, and lends.
    std::array<std::uint32_t, LengthTiers::kTiers> kept{};
    std::optional<Best> fresh{};      ///< Not tried, and a prompt as long as this waits there.
    std::optional<Best> untouched{};  ///< Not tried, and only shorter ones do.
    std::optional<Best> used{};       ///< Tried, where that is only to be avoided.
    /// For each tier, of `seen` workers those on which nothing so long waits.
    std::array<std::uint32_t, LengthTiers::kTiers> short_only{};
    std::uint32_t seen = 0;
    std::size_t members = 0;
    NoPick why = NoPick::kNoneReady;

    /// A long prompt may go where none is yet, if as many workers as are kept for shorter ones stay
    /// without.
    [[nodiscard]] bool may_touch() const {
        const int tier = LengthTiers::tier_of(untouched->score.load.prefill_tokens);
        return std::uint64_t{short_only[tier]} * members > std::uint64_t{kept[tier]} * seen;
    }
};

bool Registry::was_tried(WorkerIndex worker, const Tried& tried) const {
    if (tried.workers.empty()) return false;
    if (tried.has(worker)) return true;
    const std::uint64_t group = workers_[worker].group;
    return group != 0 && std::ranges::any_of(tried.workers, [&](WorkerIndex each) {
               return each < workers_.size() && workers_[each].group == group;
           });
}

/// SplitMix64.
std::uint64_t Registry::draw() {
    std::uint64_t z = drawn_ += 0x9E37'79B9'7F4A'7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EBULL;
    return z ^ (z >> 31);
}

std::expected<Pick, NoPick> Registry::pick(const Demand& demand, const Tried& tried, Time now) {
    Search search{.demand = demand, .tried = tried, .now = now, .pool = pool(demand.pool)};
    index_.match(demand.blocks, matches_);
    if (!stores_.empty())
        search.stored_blocks = index_.held_by_any(demand.blocks, stores_, options_.extent_blocks);
    find_peer(search);
    for (const LegPhase kind : kKinds[static_cast<int>(demand.phase)]) {
        const auto& members = search.pool.members[static_cast<int>(kind)];
        if (members.empty()) continue;
        this->search(search, members);
        // Its own kind has somebody for it, or will have soon.
        if (search.fresh || search.untouched || search.why == NoPick::kAllBusy) break;
    }
    if (search.untouched && (!search.fresh || search.may_touch()))
        keep_better(search.fresh, *search.untouched);
    if (!search.fresh) search.fresh = search.used;
    if (!search.fresh) return std::unexpected(search.why);
    return grant(search);
}

/// What it was only just sent it has yet to compute: guesses are not lent.
void Registry::find_peer(Search& search) {
    if (matches_.empty()) return;
    holders_.clear();
    matches_.longest(kLenders, draw(), holders_);
    std::uint32_t longest = search.stored_blocks;
    for (const WorkerIndex each : holders_) {
        const std::uint32_t blocks = matches_.blocks(each);
        if (blocks <= longest) return;
        const Worker& worker = workers_[each];
        if (!worker.options.lends || !worker.events) continue;
        if (worker.options.pool != search.demand.pool) continue;
        if (!takes_requests(each, search.now) || was_tried(each, search.tried)) continue;
        const std::uint32_t sure = index_.confirmed(each, search.demand.blocks.first(blocks));
        if (sure <= longest) continue;
        longest = sure;
        search.peer = Peer{.worker = each, .blocks = sure};
    }
}

void Registry::search(Search& search, std::span<const WorkerIndex> members) {
    const bool prefills =
        search.demand.phase == LegPhase::kFull || search.demand.phase == LegPhase::kPrefill;
    const bool tiers = search.pool.tiers && search.pool.policy == Policy::kDefault && prefills;
    search.kept = {};
    search.short_only = {};
    search.seen = 0;
    search.members = members.size();
    if (tiers) {
        search.kept = search.pool.lengths.kept_for_shorter(
            static_cast<std::uint32_t>(members.size()), search.now);
    }
    if (members.size() > kLookAtAll) {
        for (std::size_t i = 0; i < kDrawn; ++i) consider(search, members[draw() % members.size()]);
        holders_.clear();
        matches_.longest(kHolders, draw(), holders_);
        for (const WorkerIndex each : holders_) {
            const std::uint32_t place = workers_[each].place;
            if (place < members.size() && members[place] == each) consider(search, each);
        }
        if (search.fresh || search.untouched) return;
    }
    for (const WorkerIndex index : members) consider(search, index);
}

double Registry::seconds_per_work(WorkerIndex index) const {
    const Worker& worker = workers_[index];
    const double usual = pools_[worker.options.pool].slowness.ratio();
    double ratio = usual;
    if (worker.slowness.work >= kSpeedLeastWork) {
        const double own = worker.slowness.ratio();
        if (own > usual * kSameSpeed || own < usual / kSameSpeed) ratio = own;
    }
    return std::clamp(ratio, 1.0 / kSlowest, kSlowest) /
           worker.options.costs.prefill_tokens_per_second;
}

void Registry::consider(Search& search, WorkerIndex index) {
    const Worker& worker = workers_[index];
    if (!takes_requests(index, search.now)) return;
    const Load& ours = ledger_.load(index);
    const bool avoided = was_tried(index, search.tried);
    const bool excluded = avoided && search.tried.rule == Tried::Rule::kExclude;
    const std::uint32_t capacity = worker.options.capacity;
    if (excluded || (capacity != 0 && ours.requests >= capacity)) {
        if (search.why != NoPick::kAllBusy)
            search.why = excluded ? NoPick::kAllTried : NoPick::kAllBusy;
        return;
    }
    Candidate candidate{.costs = &worker.options.costs,
                        .seconds_per_work = seconds_per_work(index),
                        .pressure = worker.health.pressure(search.now),
                        .ramp = worker.health.ramp(search.now),
                        .capacity = capacity,
                        .load = ours};
    candidate.load += worker.reported.foreign(search.pool.usual, search.now);
    candidate.matched_tokens = std::min<std::uint64_t>(
        std::uint64_t{matches_.blocks(index)} * worker.options.costs.block_tokens,
        search.demand.tokens);
    const bool by_peer = search.peer && worker.options.lends;
    const Costs& costs = worker.options.costs;
    candidate.elsewhere_tokens = std::min<std::uint64_t>(
        std::uint64_t{by_peer ? search.peer->blocks : search.stored_blocks} * costs.block_tokens,
        search.demand.tokens);
    candidate.elsewhere_seconds_per_token =
        by_peer ? costs.peer_seconds_per_token : costs.store_seconds_per_token;
    Best best{.worker = index,
              .turn = worker.turn,
              .picked_at = worker.picked_at,
              .matched_tokens = candidate.matched_tokens,
              .waiting_tokens = candidate.load.prefill_tokens,
              .score = judge(search.pool.policy, search.demand, candidate)};
    if (options_.jitter > 0.0) {
        const double share = static_cast<double>(draw() >> 11) * 0x1p-53;
        best.score.value *= 1.0 + options_.jitter * share;
    }
    if (avoided) return keep_better(search.used, best);
    ++search.seen;
    for (int each = 1; each < LengthTiers::kTiers; ++each)
        if (best.waiting_tokens <= LengthTiers::longest_below(each)) ++search.short_only[each];
    const int tier = LengthTiers::tier_of(best.score.load.prefill_tokens);
    const bool taken = tier == 0 || best.waiting_tokens > LengthTiers::longest_below(tier);
    keep_better(taken ? search.fresh : search.untouched, best);
}

Pick Registry::grant(Search& search) {
    const Best& best = *search.fresh;
    Worker& worker = workers_[best.worker];
    auto lease = ledger_.acquire(best.worker, best.score.load);
    SLUICE_ASSERT(lease.has_value());
    worker.picked_at = ++serial_;
    // Of equals, a new one has its turn more rarely; who was away has not saved its turns up.
    double& clock = search.pool.turn;
    clock = std::max(clock, worker.turn);
    worker.turn = std::max(worker.turn, clock - 1.0) + 1.0 / worker.health.ramp(search.now);
    ++worker.picks;
    worker.health.on_pick(search.now);
    const Load& added = best.score.load;
    if (added.prefill_tokens > 0)
        search.pool.lengths.on_pick(added.prefill_tokens, static_cast<double>(added.prefill_work),
                                    search.now);
    const bool borrows =
        worker.options.lends && search.peer && search.peer->blocks > matches_.blocks(best.worker);
    return {.lease = std::move(*lease),
            .matched_tokens = best.matched_tokens,
            .peer = borrows ? search.peer : std::nullopt,
            .ttft = best.score.ttft,
            .work = best.score.work};
}

}  // namespace sluice::routing
