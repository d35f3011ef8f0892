#pragma once

// The traffic plan at work in a gateway: steers requests, copies them, compares the copies, feeds the
// guards, rolls back, and keeps all of it on disk. What it decides is traffic::Controller's to say;
// this is its hands and its memory.
//
// Made before the gateway, handed to it as steering and observer, and attached once the gateway is
// there. Belongs to the event loop's thread.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "gateway/gateway.h"
#include "gateway/logprob_scorer.h"
#include "gateway/plan_probe.h"
#include "gateway/plan_store.h"
#include "gateway/shadow_pairs.h"
#include "gateway/steering.h"
#include "net/event_loop.h"
#include "traffic/controller.h"

namespace sluice::gateway {

struct PlanServiceOptions {
    traffic::Plan plan{};              ///< Of the configuration.
    std::vector<std::string> pools{};  ///< All names.
    std::string state_folder{};        ///< Exists; empty keeps nothing.
    /// Told of every copy that has ended, with what comparing it gave, if it could be compared.
    std::function<void(const RequestReport& copy, const std::string& baseline_pool,
                       const std::optional<traffic::Comparison>& comparison)>
        on_copy_done{};
};

/// Who asks for a change, and why, as the audit log has it.
struct Operator {
    std::string who;
    std::string why;
    bool force = false;
};

class PlanService final : public RequestObserver {
public:
    /// Reads what was stored. A file that can't be read, or written, latches.
    PlanService(net::EventLoop& loop, PlanServiceOptions options);

    /// For GatewayOptions.
    [[nodiscard]] std::unique_ptr<Steering> make_steering(PoolSet& pools);
    /// Adds metrics and admin endpoints, and begins to watch.
    void attach(Gateway& gateway);

    // ---- Changes; each is on disk before it is acknowledged ----

    [[nodiscard]] Result<void> apply(traffic::Plan plan, const Operator& by);
    /// The configuration was read again. A plan that it had before changes nothing.
    [[nodiscard]] Result<void> reload(traffic::Plan plan);
    [[nodiscard]] Result<void> rearm(const Operator& by);
    /// Takes effect even if it can't be written, which is then the error.
    [[nodiscard]] Result<void> roll_back(const Operator& by, dispatch::Running running);

    [[nodiscard]] const traffic::Controller& controller() const { return controller_; }
    [[nodiscard]] const std::vector<std::string>& pool_names() const { return options_.pools; }
    [[nodiscard]] std::vector<traffic::PoolFacts> facts() const;

    void on_arrival(Generation& generation) override;
    void on_dispatch(Generation& generation) override;
    void on_done(const Generation& generation, const RequestReport& report) override;
    void on_gateway_end() override;

private:
    [[nodiscard]] static traffic::Now now();
    /// Answers wait for a place.
    [[nodiscard]] bool pressure() const;
    /// Requests that its ready workers can hold; nullopt if nobody said.
    [[nodiscard]] std::optional<std::uint64_t> places_of(const Pool& pool) const;
    /// Writes it down, and carries it out.
    [[nodiscard]] Result<void> take(const traffic::Change& change);
    [[nodiscard]] Result<void> carry_out(const traffic::Change& rollback,
                                         dispatch::Running running);
    void watch();
    void watch_pools();
    void shed(std::string_view pool, std::string_view result);

    /// A copy that is about to be made.
    struct NewCopy {
        std::string rid;  ///< Of the answer.
        bool fixed = false;
        traffic::Copy place;
    };

    /// A pair that waits for its log-probabilities.
    struct Scoring {
        ShadowPair pair;
        traffic::Comparison comparison;
        std::unique_ptr<LogprobScorer> scorer;
    };

    void copy(Generation& generation);
    void start_copy(const Generation& original, traffic::Copy place);
    void feed_guards(const RequestReport& report);
    void settle(ShadowPair pair);
    [[nodiscard]] bool worth_scoring(const ShadowPair& pair) const;
    void score(ShadowPair pair, traffic::Comparison comparison);
    void conclude(const ShadowPair& pair, const traffic::Comparison& comparison);
    void tell(const ShadowPair& pair, const std::optional<traffic::Comparison>& comparison);

    net::EventLoop& loop_;
    PlanServiceOptions options_;
    PlanStore store_;
    traffic::Controller controller_;
    net::HttpClient client_;
    Gateway* gateway_ = nullptr;
    PoolSet* pools_ = nullptr;
    std::optional<PlanProbe> probe_;
    net::Timer timer_;
    int turns_ = 0;

    ShadowPairs pairs_;
    std::optional<NewCopy> new_copy_;
    std::set<std::string, std::less<>> shed_;  ///< Copies that were given up, by rid.
    std::map<std::uint64_t, Scoring> running_scorings_;
    std::uint64_t scorings_ = 0;
};

}  // namespace sluice::gateway
