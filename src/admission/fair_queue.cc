#include "admission/fair_queue.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace sluice::admission {
namespace {

/// Nobody gives up more than this many requests for one large one.
constexpr std::size_t kGiveWayMax = 64;

}  // namespace

TenantIndex FairQueue::add_tenant(double weight, std::int32_t priority) {
    SLUICE_ASSERT(weight > 0);
    bands_.try_emplace(priority);
    flows_.push_back({.weight = weight, .priority = priority});
    return static_cast<TenantIndex>(flows_.size() - 1);
}

void FairQueue::set_tenant(TenantIndex tenant, double weight, std::int32_t priority) {
    SLUICE_ASSERT(weight > 0);
    Flow& flow = flows_[tenant];
    deactivate(tenant);
    flow.weight = weight;
    if (flow.priority != priority) flow.start = 0;  // Bands have clocks of their own.
    flow.priority = priority;
    bands_.try_emplace(priority);
    activate(tenant);
}

void FairQueue::activate(TenantIndex tenant) {
    Flow& flow = flows_[tenant];
    if (flow.active || flow.held || flow.waiting.empty()) return;
    Band& band = bands_[flow.priority];
    flow.start = std::max(flow.start, band.virtual_time);
    flow.active = true;
    band.order.emplace(flow.start, tenant);
}

void FairQueue::deactivate(TenantIndex tenant) {
    Flow& flow = flows_[tenant];
    if (!std::exchange(flow.active, false)) return;
    bands_[flow.priority].order.erase({flow.start, tenant});
}

void FairQueue::insert(const QueueEntry& entry) {
    Flow& flow = flows_[entry.tenant];
    flow.waiting.insert(place_of(entry));
    flow.backlog += static_cast<double>(entry.cost);
    flow.bytes += entry.bytes;
    bytes_ += entry.bytes;
    if (entry.deadline != Instant::max()) deadlines_.emplace(entry.deadline, entry.ticket);
    entries_.emplace(entry.ticket, entry);
}

void FairQueue::take_out(const QueueEntry& entry) {
    Flow& flow = flows_[entry.tenant];
    flow.waiting.erase(place_of(entry));
    flow.backlog -= static_cast<double>(entry.cost);
    flow.bytes -= entry.bytes;
    bytes_ -= entry.bytes;
    deadlines_.erase({entry.deadline, entry.ticket});
    if (flow.waiting.empty()) {
        flow.backlog = 0;  // Sums of doubles drift.
        deactivate(entry.tenant);
    }
    entries_.erase(entry.ticket);
}

double FairQueue::share(const Flow& flow, std::size_t requests, std::size_t bytes) const {
    const double count = static_cast<double>(requests) / static_cast<double>(bounds_.requests);
    const double memory = static_cast<double>(bytes) / static_cast<double>(bounds_.bytes);
    return std::max(count, memory) / flow.weight;
}

std::optional<std::vector<Ticket>> FairQueue::who_gives_way(const QueueEntry& entry) const {
    struct Cut {
        std::set<Place>::const_reverse_iterator next;
        std::size_t requests = 0;
        std::size_t bytes = 0;
    };
    std::map<TenantIndex, Cut> cuts;
    std::vector<Ticket> victims;
    const Flow& own = flows_[entry.tenant];
    const double own_share = share(own, own.waiting.size() + 1, own.bytes + entry.bytes);
    std::size_t requests = entries_.size() + 1;
    std::size_t bytes = bytes_ + entry.bytes;
    while (requests > bounds_.requests || bytes > bounds_.bytes) {
        std::optional<TenantIndex> most;
        std::pair<std::int32_t, double> most_claim;
        for (TenantIndex tenant = 0; tenant < flows_.size(); ++tenant) {
            const Flow& flow = flows_[tenant];
            const auto cut = cuts.find(tenant);
            const std::size_t gone = cut == cuts.end() ? 0 : cut->second.requests;
            const std::size_t freed = cut == cuts.end() ? 0 : cut->second.bytes;
            if (tenant == entry.tenant || flow.waiting.size() == gone) continue;
            const std::pair claim(-flow.priority,
                                  share(flow, flow.waiting.size() - gone, flow.bytes - freed));
            if (!most || claim > most_claim) {
                most = tenant;
                most_claim = claim;
            }
        }
        const bool fair = most && most_claim > std::pair(-own.priority, own_share);
        if (!fair || victims.size() == kGiveWayMax) return std::nullopt;
        Cut& cut = cuts.try_emplace(*most, Cut{flows_[*most].waiting.rbegin()}).first->second;
        const Ticket victim = (cut.next++)->second;
        const std::size_t size = entries_.at(victim).bytes;
        victims.push_back(victim);
        ++cut.requests;
        cut.bytes += size;
        --requests;
        bytes -= size;
    }
    return victims;
}

std::expected<std::vector<Ticket>, FairQueue::Full> FairQueue::push(const QueueEntry& entry) {
    SLUICE_ASSERT(entry.tenant < flows_.size() && entry.cost > 0);
    SLUICE_ASSERT(!entries_.contains(entry.ticket));
    if (flows_[entry.tenant].waiting.size() >= bounds_.of_tenant) {
        return std::unexpected(Full::kTenant);
    }
    auto victims = who_gives_way(entry);
    if (!victims) return std::unexpected(Full::kQueue);
    for (const Ticket victim : *victims) remove(victim);
    insert(entry);
    activate(entry.tenant);
    return *std::move(victims);
}

std::optional<QueueEntry> FairQueue::pop() {
    for (auto& [priority, band] : bands_) {
        if (band.order.empty()) continue;
        const TenantIndex tenant = band.order.begin()->second;
        Flow& flow = flows_[tenant];
        const QueueEntry entry = entries_.at(flow.waiting.begin()->second);
        deactivate(tenant);
        band.virtual_time = flow.start;
        flow.start += static_cast<double>(entry.cost) / flow.weight;
        take_out(entry);
        activate(tenant);
        return entry;
    }
    return std::nullopt;
}

void FairQueue::put_back(const QueueEntry& entry) {
    deactivate(entry.tenant);
    Flow& flow = flows_[entry.tenant];
    flow.start -= static_cast<double>(entry.cost) / flow.weight;
    insert(entry);
    activate(entry.tenant);
}

bool FairQueue::remove(Ticket ticket) {
    const auto found = entries_.find(ticket);
    if (found == entries_.end()) return false;
    take_out(QueueEntry(found->second));
    return true;
}

std::vector<Ticket> FairQueue::expire(Instant now) {
    std::vector<Ticket> expired;
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
        expired.push_back(deadlines_.begin()->second);
        remove(expired.back());
    }
    return expired;
}

Instant FairQueue::next_deadline() const {
    return deadlines_.empty() ? Instant::max() : deadlines_.begin()->first;
}

void FairQueue::hold_back(TenantIndex tenant, bool held) {
    Flow& flow = flows_[tenant];
    if (std::exchange(flow.held, held) == held) return;
    if (held) return deactivate(tenant);
    activate(tenant);
}

void FairQueue::correct(TenantIndex tenant, double tokens) {
    Flow& flow = flows_[tenant];
    deactivate(tenant);
    flow.start += tokens / flow.weight;
    activate(tenant);
}

double FairQueue::work_ahead(TenantIndex tenant, std::uint64_t cost) const {
    const Flow& own = flows_[tenant];
    const Band& band = bands_.at(own.priority);
    const double start = own.active ? own.start : std::max(own.start, band.virtual_time);
    const double turn = start + (own.backlog + static_cast<double>(cost)) / own.weight;
    double ahead = own.backlog;
    for (const auto& [priority, other] : bands_) {
        if (priority < own.priority) break;
        for (const auto& [begin, index] : other.order) {
            const Flow& flow = flows_[index];
            if (index == tenant) continue;
            const double due = priority > own.priority
                                   ? flow.backlog
                                   : std::max(0.0, (turn - begin) * flow.weight);
            ahead += std::min(flow.backlog, due);
        }
    }
    return ahead;
}

bool FairQueue::ready() const {
    return std::ranges::any_of(bands_, [](const auto& band) { return !band.second.order.empty(); });
}

}  // namespace sluice::admission
