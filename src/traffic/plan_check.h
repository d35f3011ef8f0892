#pragma once

// From what is written to a plan that makes sense. Every refusal names its place.

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/plan_config.h"
#include "traffic/plan.h"

namespace sluice::traffic {

using Errors = std::vector<Error>;

/// All mistakes at once, in the order of the file. `pools` are the names there are; with a single
/// one `stable` may be left out.
[[nodiscard]] std::expected<Plan, Errors> check_plan(const PlanConfig& config,
                                                     std::span<const std::string> pools);

/// Reads the [plan] tables of a TOML text; other tables in it are not looked at. `name` stands for
/// the text in places.
[[nodiscard]] std::expected<Plan, Errors> read_plan(std::string_view text, std::string name,
                                                    std::span<const std::string> pools);

/// What is known of a pool when a plan is to be carried out.
struct PoolFacts {
    std::string name;
    std::uint32_t ready_workers = 0;
    /// Requests its ready workers can hold; nullopt if nobody said.
    std::optional<std::uint64_t> capacity;
    std::uint64_t running = 0;  ///< Requests it answers now.
};

/// Whether the stable pool could take over everything that runs.
struct RollbackCapacity {
    bool ready = false;                  ///< The stable pool can answer at all.
    std::optional<std::uint64_t> slots;  ///< Of the stable pool; nullopt is unknown.
    std::uint64_t needed = 0;            ///< Requests that run, on whichever pool.
    [[nodiscard]] bool enough() const { return ready && slots && *slots >= needed; }
};
[[nodiscard]] RollbackCapacity rollback_capacity(const Plan& plan,
                                                 std::span<const PoolFacts> pools);

/// Why `plan` must not be carried out now, if it sends answers to other pools than the stable one.
/// An unknown capacity can be accepted by `force`, a missing one can't.
[[nodiscard]] std::optional<Error> refuse_without_headroom(const Plan& plan,
                                                           std::span<const PoolFacts> pools,
                                                           bool force);

}  // namespace sluice::traffic
