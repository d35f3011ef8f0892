#pragma once

// Carries out the traffic plan of one gateway: which pool answers a request, which pools get a copy,
// and when everything goes back to the stable pool. Events and the time go in, decisions come out;
// files and sockets are the caller's.
//
// Rolling back is a latch. It holds from the moment `roll_back` returns, the caller writes the
// returned state down before it tells anybody, and nothing but `rearm` opens it: not a restart, not
// another plan, not the same plan again. What is decided here is decided at dispatch: a request that
// waited is asked about again, so nothing reaches a pool after its latch fell.
//
// Not thread-safe.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "traffic/audit_entry.h"
#include "traffic/guard_watch.h"
#include "traffic/plan.h"
#include "traffic/plan_check.h"
#include "traffic/sample_window.h"
#include "traffic/shadow_budget.h"
#include "traffic/split_table.h"
#include "traffic/state.h"

namespace sluice::traffic {

/// The same moment on two clocks: what must survive a restart is on the wall's.
struct Now {
    Time steady;
    WallTime wall;
};

/// A state to be written down, and the line about it for the audit log.
struct Change {
    State state;
    AuditEntry entry;
};

/// A request is to be sent to `pool`, too; the place is kept until its copy has ended.
struct Copy {
    std::string pool;
    ShadowBudget::Place place;
};

/// Why a conversation's copy is not made.
enum class CopyDropped : std::uint8_t { kBudget, kPressure };

struct Copies {
    std::vector<Copy> made;
    std::vector<CopyDropped> dropped;
};

class Controller {
public:
    /// Losses of all workers of a pool within `kOutageSpan` that latch, and how long one may last.
    static constexpr std::size_t kOutages = 3;
    static constexpr std::chrono::minutes kOutageSpan{5};
    static constexpr std::chrono::seconds kOutageMax{10};

    Controller(State state, Now now);

    // ---- Decisions ----

    /// The pool that answers.
    [[nodiscard]] const std::string& choose(std::string_view conversation, Time now) const;
    /// Whether answers and copies may be sent to `pool` now, by whatever reason. The stable pool
    /// always may.
    [[nodiscard]] bool open(std::string_view pool, Time now) const;
    /// Copies of a request that `answering` answers. Under pressure, that is while answers wait for a
    /// worker, none is made.
    [[nodiscard]] Copies copies(std::string_view conversation, std::string_view answering,
                                bool pressure);

    // ---- Changes ----

    /// `plan` as the next version, or renewed weights if it is the present one. Takes effect with
    /// `adopt`, once it is written down. A latch stays. `why` is the operator's word.
    [[nodiscard]] Result<Change> apply(Plan plan, std::span<const PoolFacts> pools, bool force,
                                       const std::string& who, const std::string& why,
                                       Now now) const;
    /// Opens the latch and renews the weights, with `adopt`. Error `kInvalid` without a latch.
    [[nodiscard]] Result<Change> rearm(std::span<const PoolFacts> pools, bool force,
                                       const std::string& who, const std::string& why,
                                       Now now) const;
    void adopt(State state, Now now);

    /// Takes effect at once; what is returned is to be written down before it is acknowledged.
    /// `kind` is what metrics call the reason. The first reason stays if it is latched already.
    [[nodiscard]] Change roll_back(const std::string& reason, std::string kind,
                                   const std::string& who, Now now);

    // ---- Events ----

    void on_attempt(std::string_view pool, const Attempt& attempt, Time now);
    /// A copy on `pool` was compared with the answer it is a copy of.
    void on_comparison(std::string_view pool, bool differs, Time now);
    /// Whether `pool` has a worker that can answer. A pool that never had one is not an outage.
    void on_pool_ready(std::string_view pool, bool ready, Time now);

    struct Happened {
        std::optional<Change> rolled_back;
        std::vector<AuditEntry> notes;
    };
    /// To be called about once a second.
    [[nodiscard]] Happened tick(Now now);

    // ---- What is ----

    [[nodiscard]] const State& state() const { return state_; }
    [[nodiscard]] const Plan& plan() const { return state_.plan; }
    [[nodiscard]] bool latched() const { return state_.latched; }
    /// How long the weight of a split still holds; zero if it does not any more.
    [[nodiscard]] std::chrono::milliseconds lease_left(std::string_view pool, Time now) const;
    [[nodiscard]] std::uint32_t copies_running(std::string_view pool) const;

    // Told by `resume`, below.
    [[nodiscard]] static State fresh(Plan plan, std::uint64_t version, WallTime now);

private:
    struct PoolWatch {
        bool was_ready = false;
        bool ready = false;
        Time lost;                  ///< Of the running outage.
        std::vector<Time> outages;  ///< Within kOutageSpan.
    };

    void set_leases(Now now);
    [[nodiscard]] AuditEntry entry(std::string what, std::string why, const std::string& who,
                                   const State& state, Now now) const;
    [[nodiscard]] std::optional<std::string> broken_pool(Time now);
    [[nodiscard]] std::optional<Change> look_at_guards(Now now);
    void note_ended_leases(Now now, std::vector<AuditEntry>& notes);

    State state_;
    SplitTable table_;
    std::map<std::string, Time, std::less<>> lease_ends_;
    std::map<std::string, ShadowBudget, std::less<>> budgets_;
    std::map<std::string, SampleWindow, std::less<>> samples_;
    std::map<std::string, PoolWatch, std::less<>> watches_;
    std::vector<GuardWatch> guards_;
};

/// The state to start with: what was stored, unless the configuration's plan has changed since.
/// An error of `stored` is a file that is there and can't be read, which latches. `pools` are the names
/// there are; a stored plan that names others is dropped for the configuration's.
[[nodiscard]] Change resume(const Result<std::optional<State>>& stored, const Plan& configured,
                            std::span<const std::string> pools, Now now);

}  // namespace sluice::traffic
