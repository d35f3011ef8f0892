#pragma once

// The gateway's side of admission/: names the caller, asks Admission, and lets requests through while
// the workers have room. What Admission decides is data; here are the clock, the callbacks and the
// words for clients.
//
// Belongs to the event loop's thread.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "admission/admission.h"
#include "base/metrics.h"
#include "gateway/access.h"
#include "gateway/admission_gate.h"
#include "gateway/cache_rules.h"
#include "net/event_loop.h"

namespace sluice::gateway {

struct FairGateOptions {
    admission::AdmissionOptions admission;
    std::map<std::string, CacheRules, std::less<>> caches{};  ///< By tenant; others: the defaults.
};

class FairGate final : public AdmissionGate {
public:
    FairGate(net::EventLoop& loop, std::shared_ptr<const Access> access, FairGateOptions options);
    ~FairGate() override;
    FairGate(const FairGate&) = delete;
    FairGate& operator=(const FairGate&) = delete;

    void attach(std::function<std::optional<std::size_t>()> room,
                metrics::Registry& registry) override;
    void room_changed() override { pump_soon(); }
    [[nodiscard]] std::size_t waiting() const override { return admission_.waiting(); }
    [[nodiscard]] std::unique_ptr<AdmissionTicket> admit(const InboundRequest& request,
                                                         Decide decide) override;

private:
    class Place;
    struct Waiting {
        Decide decide;
        AdmissionVerdict verdict;
        admission::Instant since;
    };
    struct Probe {
        metrics::Family<metrics::Counter> refusals;
        metrics::Histogram wait;
        metrics::Gauge bytes;
    };

    void pump();
    void pump_soon();
    void release(admission::Ticket ticket, const admission::Used& used);
    void refuse(const Decide& decide, admission::RefusalReason reason,
                admission::Duration retry_after, const std::string& tenant);
    void gave_way(admission::Ticket ticket);
    [[nodiscard]] CacheRules rules_of(std::string_view tenant) const;
    void show_depth();

    net::EventLoop& loop_;
    std::shared_ptr<const Access> access_;
    admission::Admission admission_;
    std::map<std::string, CacheRules, std::less<>> caches_;
    std::function<std::optional<std::size_t>()> room_;
    std::unordered_map<admission::Ticket, Waiting> waiting_;
    std::optional<Probe> probe_;
    std::shared_ptr<int> alive_ = std::make_shared<int>(0);  ///< Expires with this object.
    bool pump_posted_ = false;
};

}  // namespace sluice::gateway
