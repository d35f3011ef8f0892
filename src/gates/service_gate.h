#pragma once

// The gate `service`: is there somebody and something for everything that can go wrong? It lays what a
// configuration catches beside what its owners say, and lists what is blank.

#include <string>
#include <string_view>
#include <vector>

#include "gates/failure_mode.h"
#include "gates/gate_report.h"
#include "gates/owners.h"

namespace sluice::gates {

/// One failure with all that is known about it. It passes if nothing is blank.
struct ServiceItem {
    FailureMode mode;      ///< `caught_by` and `rollback` with what the owners file adds.
    std::string owner;     ///< Empty: nobody.
    std::string accepted;  ///< Why nothing needs to catch it; empty: not accepted.
    std::vector<std::string_view> blank;  ///< Of "caught_by", "owner", "rollback".
    Verdict verdict = Verdict::kFail;
};

/// One job of a team's own layer.
struct LayerItem {
    const OwnLayer* layer = nullptr;
    const Interface* interface = nullptr;
    std::string advice;
    Verdict verdict = Verdict::kFail;
};

struct ServiceReport {
    std::vector<ServiceItem> failures;
    std::vector<LayerItem> layers;

    [[nodiscard]] bool passed() const;
};

/// The report points into `owners`, which must outlive it.
[[nodiscard]] ServiceReport check_service(const ServiceConfig& config, const ServiceFacts& facts,
                                          const Owners& owners);

/// The gaps first, then what is covered; the verdict is on the last line.
[[nodiscard]] std::string to_text(const ServiceReport& report);
/// {"gate":"service","passed","items":[{"subject","item","what","verdict","caught_by","place","owner",
/// "rollback","accepted"?,"blank":[],"advice"?}],"layers":[{"subject","kind","item","decision","owner",
/// "place","verdict","advice"}]}
[[nodiscard]] std::string to_json(const ServiceReport& report);

/// An owners file with a row for each gap, to be filled in.
[[nodiscard]] std::string owners_template(const ServiceReport& report);

}  // namespace sluice::gates
