#include "gateway/fair_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/limits.h"

namespace sluice::gateway {
namespace {

using admission::Admission;
using admission::Instant;
using admission::RefusalReason;
using admission::Ticket;
using protocol::ApiError;
using protocol::ApiErrorCode;

/// Before anybody has counted: four bytes of JSON a token.
constexpr std::uint64_t kBytesPerToken = 4;

Instant now() { return std::chrono::steady_clock::now(); }

AdmissionVerdict refusal(ApiErrorCode code, std::string message, std::string param = {}) {
    AdmissionVerdict verdict;
    verdict.refused =
        ApiError{.code = code, .message = std::move(message), .param = std::move(param)};
    return verdict;
}

std::string words(RefusalReason reason, const std::string& tenant) {
    switch (reason) {
        case RefusalReason::kTenantRequests:
            return fmt::format("tenant \"{}\" has used its requests per minute", tenant);
        case RefusalReason::kTenantTokens:
            return fmt::format("tenant \"{}\" has used its tokens per minute", tenant);
        case RefusalReason::kTenantQueue:
            return fmt::format("too many requests of tenant \"{}\" wait already", tenant);
        case RefusalReason::kQueue:
        case RefusalReason::kGaveWay:
            return fmt::format("the queue is full, and tenant \"{}\" has its share of it", tenant);
        case RefusalReason::kOverload:
            return "more is asked of this service than it can do: the answer would come too late";
    }
    return "not now";
}

ApiErrorCode code_of(RefusalReason reason) {
    const bool own =
        reason == RefusalReason::kTenantRequests || reason == RefusalReason::kTenantTokens;
    return own ? ApiErrorCode::kRateLimited : ApiErrorCode::kQueueFull;
}

/// x-sluice-priority: among the tenant's own requests, higher goes first.
Result<std::int32_t> priority_of(const net::HttpRequest& request) {
    const auto text = request.headers.find("x-sluice-priority");
    if (!text) return 0;
    std::int32_t value = 0;
    const auto [end, status] = std::from_chars(text->data(), text->data() + text->size(), value);
    const bool good = status == std::errc() && end == text->data() + text->size() &&
                      std::abs(value) <= limits::kPriorityMax;
    if (good) return value;
    return std::unexpected(
        Error::invalid(fmt::format("must be a whole number from -{0} to {0}", limits::kPriorityMax),
                       "x-sluice-priority"));
}

}  // namespace

/// A request's place; gives it back when it ends.
class FairGate::Place final : public AdmissionTicket {
public:
    Place(FairGate& gate, Ticket ticket) : gate_(&gate), alive_(gate.alive_), ticket_(ticket) {}
    ~Place() override {
        if (!alive_.expired()) gate_->release(ticket_, used_);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    void settle(std::uint64_t prompt_tokens, std::uint64_t completion_tokens) override {
        used_ = {.prompt_tokens = prompt_tokens,
                 .completion_tokens = completion_tokens,
                 .complete = completion_tokens > 0};
    }

private:
    FairGate* gate_;
    std::weak_ptr<int> alive_;
    Ticket ticket_;
    admission::Used used_;
};

FairGate::FairGate(net::EventLoop& loop, std::shared_ptr<const Access> access,
                   FairGateOptions options)
    : loop_(loop),
      access_(std::move(access)),
      admission_(std::move(options.admission)),
      caches_(std::move(options.caches)) {}

FairGate::~FairGate() = default;

void FairGate::attach(std::function<std::optional<std::size_t>()> room,
                      metrics::Registry& registry) {
    room_ = std::move(room);
    probe_.emplace(
        Probe{.refusals = registry.counter("sluice_admission_refused_total",
                                           "Requests that were refused before they could wait.",
                                           {"tenant", "reason"}),
              .wait = registry
                          .histogram("sluice_queue_wait_seconds", "From admission to dispatch.",
                                     metrics::latency_bounds())
                          .with({}),
              .bytes = registry.gauge("sluice_queue_bytes", "What waiting requests hold in memory.")
                           .with({})});
}

CacheRules FairGate::rules_of(std::string_view tenant) const {
    const auto found = caches_.find(tenant);
    return found == caches_.end() ? CacheRules{} : found->second;
}

std::unique_ptr<AdmissionTicket> FairGate::admit(const InboundRequest& request, Decide decide) {
    const net::HttpRequest& head = request.exchange->request();
    const auto caller = access_->client(head);
    if (!caller) {
        decide(refusal(caller.error().code, caller.error().message));
        return nullptr;
    }
    const auto priority = priority_of(head);
    if (!priority) {
        decide(refusal(ApiErrorCode::kInvalidRequest, priority.error().message(),
                       priority.error().place()));
        return nullptr;
    }
    const auto tenant = admission_.tenant(caller->tenant);
    if (!tenant) {
        decide(refusal(ApiErrorCode::kUnauthorized, "there are too many tenants already"));
        return nullptr;
    }
    const Instant at = now();
    const auto admitted =
        admission_.submit({.tenant = *tenant,
                           .priority = *priority,
                           .prompt_tokens = head.body.size() / kBytesPerToken,
                           .max_tokens = request.outline.max_tokens.value_or(limits::kMaxTokens),
                           .bytes = head.body.size(),
                           .deadline = at + request.deadline},
                          at);
    if (!admitted) {
        refuse(decide, admitted.error().reason, admitted.error().retry_after, caller->tenant);
        return nullptr;
    }
    AdmissionVerdict verdict;
    verdict.tenant = caller->tenant;
    const CacheRules rules = rules_of(caller->tenant);
    verdict.salt = caller->tenant;
    verdict.own_salt = own_salt(rules.share, caller->tenant, request.outline,
                                head.headers.find("x-sluice-conversation").value_or(""));
    verdict.retention = rules.retention;
    verdict.priority = admission_.limits_of(*tenant).priority;
    verdict.may_pin = caller->admin;
    waiting_.emplace(
        admitted->ticket,
        Waiting{.decide = std::move(decide), .verdict = std::move(verdict), .since = at});
    for (const Ticket gone : admitted->gave_way) gave_way(gone);
    pump_soon();  // Not from inside: the caller does not hold its ticket yet.
    return std::make_unique<Place>(*this, admitted->ticket);
}

void FairGate::refuse(const Decide& decide, RefusalReason reason, admission::Duration retry_after,
                      const std::string& tenant) {
    if (probe_) probe_->refusals.with({tenant, to_string(reason)}).add();
    AdmissionVerdict verdict = refusal(code_of(reason), words(reason, tenant));
    verdict.tenant = tenant;
    verdict.retry_after =
        std::max(std::chrono::ceil<std::chrono::seconds>(retry_after), std::chrono::seconds(1));
    decide(verdict);
}

void FairGate::gave_way(Ticket ticket) {
    const auto entry = waiting_.extract(ticket);
    if (entry.empty()) return;
    const Waiting& gone = entry.mapped();
    refuse(gone.decide, RefusalReason::kGaveWay, std::chrono::seconds(1), gone.verdict.tenant);
}

void FairGate::pump_soon() {
    show_depth();
    if (std::exchange(pump_posted_, true)) return;
    loop_.post([this, alive = std::weak_ptr(alive_)] {
        if (!alive.expired()) pump();
    });
}

void FairGate::pump() {
    pump_posted_ = false;
    while (true) {
        const auto room = room_ ? room_() : std::nullopt;
        if (room && admission_.running() >= *room) break;
        const Instant at = now();
        const auto ticket = admission_.next(at);
        if (!ticket) break;
        auto entry = waiting_.extract(*ticket);
        if (entry.empty()) continue;
        if (probe_) {
            const std::chrono::duration<double> waited = at - entry.mapped().since;
            probe_->wait.observe(waited.count());
        }
        entry.mapped().decide(entry.mapped().verdict);
    }
    show_depth();
}

void FairGate::release(Ticket ticket, const admission::Used& used) {
    waiting_.erase(ticket);
    admission_.finish(ticket, used, now());
    pump_soon();
}

void FairGate::show_depth() {
    if (probe_) probe_->bytes.set(static_cast<double>(admission_.waiting_bytes()));
}

}  // namespace sluice::gateway
