#pragma once

// Whether, and in what order, requests reach a worker: tenants' limits, the fair queue, and refusal of
// what would wait too long to be of use.
//
// A request is submitted once and finished once, whatever happens between; unknown tickets are
// ignored, so late news does no harm. The caller asks `next` whenever a worker has room, gives the
// time with every call, and owns everything about the request but its ticket.
//
//   submit ─▶ waits ─▶ next ─▶ runs ─▶ finish
//               │ expire / give way        │ put_back: its worker was lost, it waits again
//
// Overload: a service that queues everything answers everything too late. From the work that goes
// before a request and the speed at which work was taken lately its wait is foreseen, and a request
// that would miss its deadline is refused at once, with the time after which trying again makes sense.
//
// Not thread-safe.

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "admission/fair_queue.h"
#include "admission/quota.h"
#include "admission/service_rate.h"
#include "admission/tenant.h"

namespace sluice::admission {

struct AdmissionOptions {
    QueueBounds bounds;
    Duration wait_max = std::chrono::seconds(60);  ///< Foreseen waits above it are refused.
    std::vector<TenantLimits> tenants;
};

struct Submission {
    TenantIndex tenant = 0;
    std::int32_t priority = 0;  ///< Among the tenant's own requests.
    std::uint64_t prompt_tokens = 0;
    std::uint64_t max_tokens = 0;
    std::size_t bytes = 0;
    Instant deadline = Instant::max();
};

enum class RefusalReason : std::uint8_t {
    kTenantRequests,  ///< The tenant's requests per minute.
    kTenantTokens,    ///< The tenant's tokens per minute.
    kTenantQueue,     ///< Too many of the tenant's requests wait.
    kQueue,           ///< The queue is full, and the tenant holds its share of it.
    kGaveWay,         ///< It waited, and a tenant that holds less of the queue took its place.
    kOverload,        ///< It would wait too long.
};

[[nodiscard]] std::string_view to_string(RefusalReason reason);

struct Refusal {
    RefusalReason reason;
    Duration retry_after;  ///< When trying again may help.
};

struct Admitted {
    Ticket ticket;
    std::vector<Ticket> gave_way;  ///< Others that had to go; they are finished.
};

struct Used {
    std::uint64_t prompt_tokens = 0;
    std::uint64_t completion_tokens = 0;
    bool complete = false;  ///< The answer ended by itself: its length is worth learning from.
};

class Admission {
public:
    explicit Admission(AdmissionOptions options);

    /// The tenant of this name. One that the configuration doesn't know has no limits and weight 1.
    /// Nullopt if there are `limits::kTenants` already.
    [[nodiscard]] std::optional<TenantIndex> tenant(std::string_view name);
    [[nodiscard]] const TenantLimits& limits_of(TenantIndex tenant) const {
        return tenants_[tenant].limits;
    }
    [[nodiscard]] std::size_t tenants() const { return tenants_.size(); }

    [[nodiscard]] std::expected<Admitted, Refusal> submit(const Submission& submission,
                                                          Instant now);

    /// The request that goes to a worker now; it runs from here on. Nullopt if none may.
    [[nodiscard]] std::optional<Ticket> next(Instant now);

    /// No worker took it after all, or its worker was lost: it waits again, at its old place.
    void put_back(Ticket ticket, Instant now);

    void finish(Ticket ticket, const Used& used, Instant now);

    /// Waiting requests whose deadline has passed; they are finished.
    [[nodiscard]] std::vector<Ticket> expire(Instant now);
    [[nodiscard]] Instant next_deadline() const { return queue_.next_deadline(); }

    [[nodiscard]] std::size_t waiting() const { return queue_.size(); }
    [[nodiscard]] std::size_t waiting(TenantIndex tenant) const { return queue_.size(tenant); }
    [[nodiscard]] std::size_t waiting_bytes() const { return queue_.bytes(); }
    [[nodiscard]] std::size_t running() const { return running_; }
    [[nodiscard]] std::size_t running(TenantIndex tenant) const { return tenants_[tenant].running; }
    /// Whether `next` would give something.
    [[nodiscard]] bool ready() const { return queue_.ready(); }

    /// How long a request of this size would wait, as far as can be told.
    [[nodiscard]] std::optional<Duration> foreseen_wait(TenantIndex tenant, std::uint64_t cost,
                                                        Instant now) const;

private:
    struct Tenant {
        TenantLimits limits;
        Quota quota;
        std::uint32_t running = 0;
    };
    struct Request {
        QueueEntry entry;
        std::uint64_t reserved = 0;
        std::optional<Instant> started;  ///< Set while it runs.
    };

    TenantIndex add_tenant(TenantLimits limits);
    [[nodiscard]] std::optional<Refusal> overload(const Submission& submission, std::uint64_t cost,
                                                  Instant now) const;
    [[nodiscard]] Duration retry_after(Duration wait) const;
    void start(Request& request, Instant now);
    void stop(Request& request);
    void drop(Ticket ticket, Instant now);
    void look_at_load(Instant now);

    AdmissionOptions options_;
    std::vector<Tenant> tenants_;
    std::unordered_map<std::string, TenantIndex> by_name_;
    FairQueue queue_;
    ServiceRate rate_;
    std::unordered_map<Ticket, Request> requests_;
    std::size_t running_ = 0;
    Ticket last_ticket_ = 0;
};

}  // namespace sluice::admission
