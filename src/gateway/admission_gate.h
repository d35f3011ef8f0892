#pragma once

// Whether and when a request may be dispatched, by whom it comes from and how much of it there is.
// Admission plugs in here; without it everybody is admitted at once.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/metrics.h"
#include "base/retention.h"
#include "gateway/inbound_request.h"
#include "protocol/errors.h"

namespace sluice::gateway {

struct AdmissionVerdict {
    /// Set: the request ends with this error.
    std::optional<protocol::ApiError> refused;
    std::optional<std::chrono::seconds> retry_after;  ///< Told to a refused client.
    std::string tenant;
    std::string salt;
    std::string own_salt{};                  ///< InboundRequest::own_salt
    Retention retention = Retention::kChat;  ///< Of the tenant's requests without tools.
    std::int32_t priority = 0;               ///< Of the tenant, for the engine; higher runs first.
    /// The client may choose its pool (x-sluice-pool).
    bool may_pin = false;
};

/// A request's place in the books. Destroyed, it is given back; at the end of every request, whatever
/// its outcome, and also of one that still waits for its verdict.
class AdmissionTicket {
public:
    virtual ~AdmissionTicket() = default;
    /// What it really used, known at the end; called at most once.
    virtual void settle(std::uint64_t prompt_tokens, std::uint64_t completion_tokens) = 0;
};

class AdmissionGate {
public:
    using Decide = std::function<void(const AdmissionVerdict&)>;

    virtual ~AdmissionGate() = default;

    /// Called once, before the first request. `room`: how many requests the workers hold together;
    /// nullopt is any number.
    virtual void attach(std::function<std::optional<std::size_t>()> room,
                        metrics::Registry& registry) = 0;
    /// There may be more room than there was.
    virtual void room_changed() = 0;
    /// Requests that wait for their verdict.
    [[nodiscard]] virtual std::size_t waiting() const = 0;

    /// `decide` is called once, later or from inside, unless the ticket is destroyed before.
    /// `request` (its outline is read, its tenant not known) lives as long as the ticket.
    [[nodiscard]] virtual std::unique_ptr<AdmissionTicket> admit(const InboundRequest& request,
                                                                 Decide decide) = 0;
};

}  // namespace sluice::gateway
