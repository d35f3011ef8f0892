#pragma once

// Which workers there are, by what three sources say: a command line for ever, a registration for as
// long as its lease is renewed, etcd for as long as a key is there. A worker that several sources name is
// one worker, and is gone when the last of them lets go of it.
//
// Pure: the time goes in, changes come out, to be carried out in their order. Not thread-safe.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "discovery/worker_entry.h"

namespace sluice::discovery {

using Time = std::chrono::steady_clock::time_point;

struct Change {
    enum class Kind : std::uint8_t {
        kAdd,
        kRemove,  ///< Nothing new goes there; what runs there moves on or ends, then it is forgotten.
    };
    Kind kind = Kind::kAdd;
    WorkerEntry worker;
    bool operator==(const Change&) const = default;
};
using Changes = std::vector<Change>;

class Membership {
public:
    /// `workers_max` of all sources together.
    explicit Membership(std::size_t workers_max) : workers_max_(workers_max) {}

    /// For ever. Error `kExhausted` beyond the bound; so for the next.
    [[nodiscard]] Result<Changes> add_static(const WorkerEntry& worker);

    /// A registration, or its renewal; without a lease it holds until `withdraw`. A worker that is
    /// registered for another phase than before is removed and added.
    [[nodiscard]] Result<Changes> announce(const WorkerEntry& worker,
                                           std::optional<std::chrono::milliseconds> lease,
                                           Time now);

    /// By hand: not registered and not of the command line any more.
    [[nodiscard]] Changes withdraw(const std::string& pool, const std::string& url);

    /// Everything that etcd knows now. What is beyond the bound is left out; `left_out` counts it.
    [[nodiscard]] Changes replace_etcd(const std::vector<WorkerEntry>& workers);
    [[nodiscard]] std::size_t left_out() const { return left_out_; }

    /// Lets go of registrations whose lease has ended.
    [[nodiscard]] Changes expire(Time now);

    [[nodiscard]] bool in_etcd(const std::string& pool, const std::string& url) const;
    [[nodiscard]] std::size_t size() const { return members_.size(); }

private:
    using Key = std::pair<std::string, std::string>;  ///< Pool and address.
    struct Member {
        routing::LegPhase phase = routing::LegPhase::kFull;
        bool is_static = false;
        bool registered = false;
        bool in_etcd = false;
        std::optional<Time> lease_end;  ///< Of the registration; none is for ever.

        [[nodiscard]] bool held() const { return is_static || registered || in_etcd; }
    };
    using Members = std::map<Key, Member>;

    /// The member of this worker, made where it is new; nullptr beyond the bound.
    Member* enter(const WorkerEntry& worker, Changes& changes);
    /// Returns the one behind it.
    Members::iterator settle(Members::iterator member, Changes& changes);

    std::size_t workers_max_;
    std::size_t left_out_ = 0;
    Members members_;
};

}  // namespace sluice::discovery
