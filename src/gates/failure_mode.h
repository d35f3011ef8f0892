#pragma once

// What can go wrong with a service, as `gate service` lists it: one table of failures that teams have
// met in production, and for a given configuration what catches each of them.
//
// A failure that nothing in the configuration catches is a gap until somebody says, in the owners file,
// what else does. One that is there already (a certificate that has expired) can't be talked away.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/service_config.h"
#include "gates/service_facts.h"

namespace sluice::gates {

enum class Failure : std::uint8_t {
    // Of a pool that answers or gets copies.
    kWorkerCrashes,
    kNoSpareWorker,
    kWorkerStalls,
    kWrongModel,
    kModelFileMissing,
    kPoisonRequest,
    kOverload,
    kUpstreamKeyMissing,
    kUpstreamOverheard,
    kTenantsShareCache,
    kPriceMissing,
    // Of a pool that may become the one that answers.
    kCandidateErrors,
    kCandidateSlow,
    kCandidateInvalidOutput,
    kCandidateAnswersDiffer,
    kBlindSplit,
    kSplitForgotten,
    kNoRoomToRollBack,
    // Of the service: changes.
    kBadRollout,
    kNoiseTakenForFault,
    kRolledBackComesBack,
    kBadConfiguration,
    kSluiceUpgrade,
    // Of the service: who reaches it.
    kStrangerAsks,
    kKeyLeaks,
    kTenantFlood,
    kClientsOverheard,
    kAdminReached,
    kCertificateExpires,
    // Of the service: evidence, and the machine.
    kNothingRecorded,
    kRecordDiskFull,
    kEvidenceGone,
    kStableDegrades,
    kGatewayCrashes,
    kMachineLost,
};

struct FailureText {
    std::string_view name;  ///< "worker_crashes", as an owners file has it.
    std::string_view what;  ///< "an engine process ends in the middle of answers"
};

[[nodiscard]] const FailureText& text_of(Failure failure);
[[nodiscard]] std::optional<Failure> parse_failure(std::string_view name);
[[nodiscard]] std::vector<std::string_view> failure_names();

/// The subject of what concerns no single pool.
inline constexpr std::string_view kWholeService = "service";

/// One failure that this configuration may meet.
struct FailureMode {
    Failure failure{};
    std::string subject;    ///< A pool, or kWholeService.
    std::string caught_by;  ///< Empty: nothing that the configuration turns on.
    std::string place;      ///< Of the setting that catches it, or should: "sluice.toml:12".
    std::string rollback;   ///< What undoes the harm; empty: only the team can say.
    std::string advice;     ///< What would catch it; empty if nothing is to be done.
    bool present = false;   ///< It is not a risk but a fact; `advice` says what was found.
};

/// All that `config` may meet, pool by pool, then the service. Pools that the plan gives no traffic are
/// left out.
[[nodiscard]] std::vector<FailureMode> failure_modes(const ServiceConfig& config,
                                                     const ServiceFacts& facts);

// The parts of it, a file each.

/// Whether and how the plan uses a pool.
struct PoolRole {
    bool answers = false;  ///< It is the stable one.
    const SplitConfig* split = nullptr;
    const ShadowConfig* shadow = nullptr;

    [[nodiscard]] bool used() const { return answers || split != nullptr || shadow != nullptr; }
};
[[nodiscard]] PoolRole role_of(const ServiceConfig& config, const PoolConfig& pool);

void add_pool_failures(const ServiceConfig& config, const PoolConfig& pool,
                       const ServiceFacts& facts, std::vector<FailureMode>& modes);
void add_candidate_failures(const ServiceConfig& config, const PoolConfig& pool,
                            std::vector<FailureMode>& modes);
void add_change_failures(const ServiceConfig& config, std::vector<FailureMode>& modes);
void add_access_failures(const ServiceConfig& config, const ServiceFacts& facts,
                         std::vector<FailureMode>& modes);
void add_evidence_failures(const ServiceConfig& config, const ServiceFacts& facts,
                           std::vector<FailureMode>& modes);

}  // namespace sluice::gates
