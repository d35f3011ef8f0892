#include "kv/placement.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>
#include <utility>

#include "base/assert.h"
#include "base/hash.h"
#include "base/limits.h"

namespace sluice::kv {
namespace {

/// The same on every machine and in every build: workers must agree about owners.
std::uint64_t hash_of(const std::string& name) {
    return xxh3_128(std::as_bytes(std::span(name))).low;
}

/// Keys are digests, so eight of their bytes are as good as random; what is left to do is to mix
/// them with the member's hash so that no two members' scores depend on each other (the finalizer
/// of MurmurHash3).
std::uint64_t score(std::uint64_t member, const BlockKey& extent) {
    std::uint64_t mixed = 0;
    for (std::size_t i = 0; i < 8; ++i) mixed = mixed << 8 | extent[i];
    mixed ^= member;
    mixed = (mixed ^ (mixed >> 33)) * 0xff51afd7ed558ccdULL;
    mixed = (mixed ^ (mixed >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return mixed ^ (mixed >> 33);
}

}  // namespace

Placement::Placement(std::size_t replicas) : replicas_(replicas) {
    SLUICE_ASSERT(replicas > 0);
    epochs_.emplace_back();
}

bool Placement::set_members(std::uint64_t epoch, std::vector<std::string> members) {
    if (epoch <= epochs_.front().number) return false;
    std::ranges::sort(members);
    const auto twice = std::ranges::unique(members);
    members.erase(twice.begin(), twice.end());
    Epoch next{.number = epoch, .names = std::move(members), .hashes = {}};
    std::ranges::transform(next.names, std::back_inserter(next.hashes), hash_of);
    epochs_.push_front(std::move(next));
    if (epochs_.size() > limits::kKvEpochsKept) epochs_.pop_back();
    return true;
}

std::uint64_t Placement::epoch() const { return epochs_.front().number; }

const std::vector<std::string>& Placement::members() const { return epochs_.front().names; }

std::vector<std::size_t> Placement::owners_in(const Epoch& epoch, const BlockKey& extent) const {
    std::vector<std::pair<std::uint64_t, std::size_t>> scores;
    scores.reserve(epoch.hashes.size());
    for (std::size_t i = 0; i < epoch.hashes.size(); ++i)
        scores.emplace_back(score(epoch.hashes[i], extent), i);
    const std::size_t count = std::min(replicas_, scores.size());
    const auto end = scores.begin() + static_cast<std::ptrdiff_t>(count);
    std::partial_sort(scores.begin(), end, scores.end(), std::greater<>());
    std::vector<std::size_t> owners;
    std::transform(scores.begin(), end, std::back_inserter(owners),
                   [](const auto& scored) { return scored.second; });
    return owners;
}

std::vector<std::size_t> Placement::owners(const BlockKey& extent) const {
    return owners_in(epochs_.front(), extent);
}

std::vector<std::size_t> Placement::previous_owners(const BlockKey& extent) const {
    std::vector<std::size_t> seen = owners(extent);
    const std::size_t present = seen.size();
    for (std::size_t back = 1; back < epochs_.size(); ++back) {
        for (const std::size_t owner : owners_in(epochs_[back], extent)) {
            const auto found = std::ranges::lower_bound(members(), epochs_[back].names[owner]);
            if (found == members().end() || *found != epochs_[back].names[owner]) continue;
            const auto member = static_cast<std::size_t>(found - members().begin());
            if (std::ranges::find(seen, member) == seen.end()) seen.push_back(member);
        }
    }
    seen.erase(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(present));
    return seen;
}

double Placement::moved_share() const {
    if (epochs_.size() < 2 || epochs_[1].names.empty()) return 0;
    const std::vector<std::string>& now = epochs_[0].names;
    const std::vector<std::string>& before = epochs_[1].names;
    std::vector<std::string> both;
    std::ranges::set_intersection(now, before, std::back_inserter(both));
    const std::size_t any = now.size() + before.size() - both.size();
    // An extent stays exactly if the highest score of all nodes, old and new, is one of a node that
    // was there and still is; and each node is as likely as any other to have it.
    return 1 - static_cast<double>(both.size()) / static_cast<double>(any);
}

}  // namespace sluice::kv
