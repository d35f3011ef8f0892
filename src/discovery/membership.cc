#include "discovery/membership.h"

#include <fmt/format.h>

#include <set>

namespace sluice::discovery {
namespace {

std::unexpected<Error> too_many(std::size_t workers_max) {
    return std::unexpected(
        Error(ErrorCode::kExhausted, fmt::format("there are {} workers already", workers_max)));
}

}  // namespace

Membership::Member* Membership::enter(const WorkerEntry& worker, Changes& changes) {
    const Key key{worker.pool, worker.url};
    const auto found = members_.find(key);
    if (found != members_.end()) {
        Member& member = found->second;
        if (member.phase == worker.phase) return &member;
        changes.push_back({Change::Kind::kRemove, {worker.pool, worker.url, member.phase}});
        changes.push_back({Change::Kind::kAdd, worker});
        member.phase = worker.phase;
        return &member;
    }
    if (members_.size() >= workers_max_) return nullptr;
    changes.push_back({Change::Kind::kAdd, worker});
    Member& member = members_[key];
    member.phase = worker.phase;
    return &member;
}

Membership::Members::iterator Membership::settle(Members::iterator member, Changes& changes) {
    if (member->second.held()) return std::next(member);
    changes.push_back(
        {Change::Kind::kRemove, {member->first.first, member->first.second, member->second.phase}});
    return members_.erase(member);
}

Result<Changes> Membership::add_static(const WorkerEntry& worker) {
    Changes changes;
    Member* const member = enter(worker, changes);
    if (member == nullptr) return too_many(workers_max_);
    member->is_static = true;
    return changes;
}

Result<Changes> Membership::announce(const WorkerEntry& worker,
                                     std::optional<std::chrono::milliseconds> lease, Time now) {
    Changes changes;
    Member* const member = enter(worker, changes);
    if (member == nullptr) return too_many(workers_max_);
    member->registered = true;
    member->lease_end = lease ? std::optional(now + *lease) : std::nullopt;
    return changes;
}

Changes Membership::withdraw(const std::string& pool, const std::string& url) {
    Changes changes;
    const auto found = members_.find({pool, url});
    if (found == members_.end()) return changes;
    found->second.is_static = false;
    found->second.registered = false;
    settle(found, changes);
    return changes;
}

Changes Membership::replace_etcd(const std::vector<WorkerEntry>& workers) {
    Changes changes;
    std::set<Key> there;
    left_out_ = 0;
    // What is gone makes room for what is new.
    for (const WorkerEntry& worker : workers) there.emplace(worker.pool, worker.url);
    for (auto member = members_.begin(); member != members_.end();) {
        member->second.in_etcd = there.contains(member->first);
        // One that is there, but was known for nothing else, stays for the loop below.
        member = member->second.in_etcd ? std::next(member) : settle(member, changes);
    }
    for (const WorkerEntry& worker : workers) {
        Member* const member = enter(worker, changes);
        if (member != nullptr) member->in_etcd = true;
        if (member == nullptr) ++left_out_;
    }
    return changes;
}

Changes Membership::expire(Time now) {
    Changes changes;
    for (auto member = members_.begin(); member != members_.end();) {
        std::optional<Time>& end = member->second.lease_end;
        if (end && *end <= now) {
            end.reset();
            member->second.registered = false;
        }
        member = settle(member, changes);
    }
    return changes;
}

bool Membership::in_etcd(const std::string& pool, const std::string& url) const {
    const auto found = members_.find({pool, url});
    return found != members_.end() && found->second.in_etcd;
}

}  // namespace sluice::discovery
