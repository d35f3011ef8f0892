#include "admission/admission.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"

namespace sluice::admission {
namespace {

using Seconds = std::chrono::duration<double>;

/// Forecasts err; requests that would only just make it mostly don't.
constexpr double kUsableShareOfWait = 0.8;
/// Even where a long request would not make it at all, this part of the time may be waited: a queue
/// that is always empty leaves places idle.
constexpr double kLeastShareOfWait = 0.1;

Duration duration_of(double seconds) {
    constexpr double kLongest = 365.0 * 24 * 3600;
    return std::chrono::duration_cast<Duration>(Seconds(std::min(seconds, kLongest)));
}

}  // namespace

std::string_view to_string(RefusalReason reason) {
    switch (reason) {
        case RefusalReason::kTenantRequests: return "tenant_requests";
        case RefusalReason::kTenantTokens: return "tenant_tokens";
        case RefusalReason::kTenantQueue: return "tenant_queue";
        case RefusalReason::kQueue: return "queue";
        case RefusalReason::kGaveWay: return "gave_way";
        case RefusalReason::kOverload: return "overload";
    }
    return "unknown";
}

Admission::Admission(AdmissionOptions options)
    : options_(std::move(options)), queue_(options_.bounds) {
    for (TenantLimits& limits : options_.tenants) add_tenant(std::move(limits));
}

TenantIndex Admission::add_tenant(TenantLimits limits) {
    const TenantIndex index = queue_.add_tenant(limits.weight, limits.priority);
    by_name_.emplace(limits.name, index);
    const Quota quota(limits);
    tenants_.push_back({.limits = std::move(limits), .quota = quota});
    return index;
}

std::optional<TenantIndex> Admission::tenant(std::string_view name) {
    const auto known = by_name_.find(std::string(name));
    if (known != by_name_.end()) return known->second;
    if (tenants_.size() >= limits::kTenants) return std::nullopt;
    return add_tenant({.name = std::string(name)});
}

Duration Admission::retry_after(Duration wait) const {
    return std::clamp<Duration>(wait, std::chrono::seconds(1),
                                std::chrono::seconds(limits::kRetryAfterSeconds));
}

std::optional<Duration> Admission::foreseen_wait(TenantIndex index, std::uint64_t cost,
                                                 Instant now) const {
    const auto rate = rate_.tokens_per_second(now);
    if (!rate) return std::nullopt;
    double seconds = queue_.work_ahead(index, cost) / *rate;
    const Tenant& tenant = tenants_[index];
    if (const std::uint32_t places = tenant.limits.concurrency; places > 0) {
        // What the tenant's own concurrency lets through, however free the service is.
        const double before = static_cast<double>(queue_.size(index) + tenant.running + 1) - places;
        seconds = std::max(seconds, before * rate_.mean_seconds() / places);
    }
    return duration_of(std::max(0.0, seconds));
}

std::optional<Refusal> Admission::overload(const Submission& submission, std::uint64_t cost,
                                           Instant now) const {
    const auto wait = foreseen_wait(submission.tenant, cost, now);
    if (!wait || *wait == Duration::zero()) return std::nullopt;
    Duration bearable = options_.wait_max;
    if (submission.deadline != Instant::max()) {
        const double left = Seconds(submission.deadline - now).count();
        const double usable =
            std::max((left - rate_.long_seconds()) * kUsableShareOfWait, left * kLeastShareOfWait);
        bearable = std::min(bearable, duration_of(std::max(0.0, usable)));
    }
    if (*wait <= bearable) return std::nullopt;
    return Refusal{RefusalReason::kOverload, retry_after(*wait - bearable)};
}

std::expected<Admitted, Refusal> Admission::submit(const Submission& submission, Instant now) {
    Tenant& tenant = tenants_[submission.tenant];
    const std::uint64_t reserved =
        tenant.quota.estimate(submission.prompt_tokens, submission.max_tokens);
    if (const auto refused = tenant.quota.refusal(reserved, now)) {
        const bool tokens = refused->kind == QuotaKind::kTokens;
        return std::unexpected(
            Refusal{tokens ? RefusalReason::kTenantTokens : RefusalReason::kTenantRequests,
                    refused->retry_after});
    }
    const std::uint64_t cost = std::max<std::uint64_t>(reserved, 1);
    if (const auto refused = overload(submission, cost, now)) return std::unexpected(*refused);

    const QueueEntry entry{.ticket = ++last_ticket_,
                           .tenant = submission.tenant,
                           .priority = submission.priority,
                           .cost = cost,
                           .bytes = submission.bytes,
                           .deadline = submission.deadline};
    auto pushed = queue_.push(entry);
    if (!pushed) {
        const auto wait = foreseen_wait(submission.tenant, cost, now);
        const bool own = pushed.error() == FairQueue::Full::kTenant;
        return std::unexpected(Refusal{own ? RefusalReason::kTenantQueue : RefusalReason::kQueue,
                                       retry_after(wait.value_or(Duration::zero()) / 2)});
    }
    tenant.quota.reserve(reserved, now);
    requests_.emplace(entry.ticket, Request{.entry = entry, .reserved = reserved});
    for (const Ticket gone : *pushed) drop(gone, now);
    look_at_load(now);
    return Admitted{.ticket = entry.ticket, .gave_way = *std::move(pushed)};
}

std::optional<Ticket> Admission::next(Instant now) {
    const auto entry = queue_.pop();
    if (!entry) return std::nullopt;
    rate_.took(static_cast<double>(entry->cost), now);
    start(requests_.at(entry->ticket), now);
    look_at_load(now);
    return entry->ticket;
}

void Admission::start(Request& request, Instant now) {
    request.started = now;
    ++running_;
    Tenant& tenant = tenants_[request.entry.tenant];
    ++tenant.running;
    if (tenant.running == tenant.limits.concurrency) queue_.hold_back(request.entry.tenant, true);
}

void Admission::stop(Request& request) {
    request.started.reset();
    --running_;
    Tenant& tenant = tenants_[request.entry.tenant];
    if (tenant.running-- == tenant.limits.concurrency)
        queue_.hold_back(request.entry.tenant, false);
}

void Admission::put_back(Ticket ticket, Instant now) {
    const auto found = requests_.find(ticket);
    if (found == requests_.end() || !found->second.started) return;
    stop(found->second);
    queue_.put_back(found->second.entry);
    look_at_load(now);
}

void Admission::finish(Ticket ticket, const Used& used, Instant now) {
    const auto found = requests_.find(ticket);
    if (found == requests_.end()) return;
    Request& request = found->second;
    Tenant& tenant = tenants_[request.entry.tenant];
    if (request.started) {
        const std::uint64_t tokens = used.prompt_tokens + used.completion_tokens;
        rate_.ran(Seconds(now - *request.started).count());
        stop(request);
        queue_.correct(request.entry.tenant,
                       static_cast<double>(tokens) - static_cast<double>(request.entry.cost));
        tenant.quota.settle(request.reserved, tokens, now);
        if (used.complete) tenant.quota.learn(used.completion_tokens);
        requests_.erase(found);
    } else {
        queue_.remove(ticket);
        drop(ticket, now);
    }
    look_at_load(now);
}

/// Forgets a request that never ran and waits no more.
void Admission::drop(Ticket ticket, Instant now) {
    const auto found = requests_.find(ticket);
    SLUICE_ASSERT(found != requests_.end() && !found->second.started);
    tenants_[found->second.entry.tenant].quota.settle(found->second.reserved, 0, now);
    requests_.erase(found);
}

std::vector<Ticket> Admission::expire(Instant now) {
    std::vector<Ticket> expired = queue_.expire(now);
    for (const Ticket ticket : expired) drop(ticket, now);
    look_at_load(now);
    return expired;
}

void Admission::look_at_load(Instant now) { rate_.busy(queue_.size() > 0 && running_ > 0, now); }

}  // namespace sluice::admission
