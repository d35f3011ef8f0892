#pragma once

// Requests that wait for a worker, shared out by start-time fair queueing (Goyal, Vin and Cheng,
// 1996): each tenant has a virtual clock that runs by the tokens it was given over its weight, and
// whoever is furthest behind goes next. A tenant that floods only makes its own queue longer, and one
// that was away has saved nothing up.
//
// Tenants of a higher priority go before all others; a tenant's own requests go by their priority,
// then by their order. Everything costs O(log n) in the requests, and O(tenants) where it says so.
//
// Count and bytes are bounded. When the queue is full, the newest request of the tenant that holds
// most of it for its weight gives way to one of a tenant that holds less: a flood doesn't keep others
// from even waiting.

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "admission/tenant.h"
#include "admission/token_bucket.h"

namespace sluice::admission {

/// Names a request; grows with each, and thereby gives their order.
using Ticket = std::uint64_t;

struct QueueEntry {
    Ticket ticket = 0;
    TenantIndex tenant = 0;
    std::int32_t priority = 0;  ///< Among the tenant's own; higher goes first.
    std::uint64_t cost = 1;     ///< Tokens of work, at least one.
    std::size_t bytes = 0;      ///< What it holds in memory while it waits.
    Instant deadline = Instant::max();
};

struct QueueBounds {
    std::size_t requests = 0;
    std::size_t bytes = 0;
    std::size_t of_tenant = 0;
};

class FairQueue {
public:
    explicit FairQueue(QueueBounds bounds) : bounds_(bounds) {}

    /// The next index. `weight` is above zero.
    TenantIndex add_tenant(double weight, std::int32_t priority);
    void set_tenant(TenantIndex tenant, double weight, std::int32_t priority);

    /// Tickets that had to give way, which no longer wait; or which bound is reached, and nothing is
    /// changed. O(tenants) for each that must give way.
    enum class Full : std::uint8_t { kTenant, kQueue };
    [[nodiscard]] std::expected<std::vector<Ticket>, Full> push(const QueueEntry& entry);

    /// The next request of all tenants that are not held back.
    [[nodiscard]] std::optional<QueueEntry> pop();

    /// Undoes a `pop`: the request waits at its old place, whatever the bounds.
    void put_back(const QueueEntry& entry);

    /// False if it does not wait here.
    bool remove(Ticket ticket);

    /// Those whose deadline is `now` or earlier, no longer waiting.
    [[nodiscard]] std::vector<Ticket> expire(Instant now);
    /// When `expire` will next have something to say; Instant::max() for never.
    [[nodiscard]] Instant next_deadline() const;

    /// A tenant that is held back keeps its requests here, and nobody waits for it.
    void hold_back(TenantIndex tenant, bool held);

    /// What a tenant was given was worth more or less than its cost said.
    void correct(TenantIndex tenant, double tokens);

    /// Tokens of work that go before a new request. O(tenants that wait).
    [[nodiscard]] double work_ahead(TenantIndex tenant, std::uint64_t cost) const;

    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] std::size_t size(TenantIndex tenant) const {
        return flows_[tenant].waiting.size();
    }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    /// Whether `pop` would give something.
    [[nodiscard]] bool ready() const;

private:
    /// Order within a tenant: priority from high to low, then age.
    using Place = std::pair<std::int32_t, Ticket>;
    struct Flow {
        double weight = 1;
        std::int32_t priority = 0;
        double start = 0;       ///< Virtual time at which its next request may begin.
        double backlog = 0;     ///< Tokens that wait.
        std::size_t bytes = 0;  ///< What waits here holds.
        std::set<Place> waiting;
        bool held = false;
        bool active = false;  ///< Is in its band's order.
    };
    /// Tenants of equal priority.
    struct Band {
        double virtual_time = 0;
        std::set<std::pair<double, TenantIndex>> order;
    };

    [[nodiscard]] static Place place_of(const QueueEntry& entry) {
        return {-entry.priority, entry.ticket};
    }
    void insert(const QueueEntry& entry);
    void take_out(const QueueEntry& entry);
    void activate(TenantIndex tenant);
    void deactivate(TenantIndex tenant);
    [[nodiscard]] double share(const Flow& flow, std::size_t requests, std::size_t bytes) const;
    /// Who must go so that `entry` fits; nullopt if nobody holds more than its tenant would.
    [[nodiscard]] std::optional<std::vector<Ticket>> who_gives_way(const QueueEntry& entry) const;

    QueueBounds bounds_;
    std::vector<Flow> flows_;
    std::map<std::int32_t, Band, std::greater<>> bands_;  ///< High priority first.
    std::unordered_map<Ticket, QueueEntry> entries_;
    std::set<std::pair<Instant, Ticket>> deadlines_;
    std::size_t bytes_ = 0;
};

}  // namespace sluice::admission
