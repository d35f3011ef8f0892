#pragma once

// The owners file of `gate service`: what no configuration can know. Who owns a failure, what catches it
// where Sluice does not, how its harm is undone, and which layers a team has of its own.
//
//   owner = "serving on-call"                 # of all that no row names
//
//   [[failure]]
//   name      = "certificate_expires"
//   pool      = "candidate"                   # left out: wherever it may happen
//   owner     = "platform"
//   caught_by = "the alert cert_ends_soon"
//   rollback  = "certbot renew"
//   accepted  = "why nothing needs to catch it"
//
//   [[layer]]
//   kind    = "traffic"                       # or "cache"
//   name    = "Envoy"
//   owner   = "platform"
//   does    = ["tls", "retries"]
//   settled = ["retries"]                     # adapted or replaced, as the gate said

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "gates/failure_mode.h"
#include "gates/own_layer.h"

namespace sluice::gates {

struct OwnedFailure {
    Failure failure{};
    std::string pool;  ///< Empty: of every subject.
    std::string owner;
    std::string caught_by;
    std::string rollback;
    std::string accepted;
    std::string place;  ///< "owners.toml:12"
};

struct Owners {
    std::string owner;  ///< Of what no row names.
    std::vector<OwnedFailure> failures;
    std::vector<OwnLayer> layers;

    /// The row that names the pool, else the one without a pool; nullptr if there is none.
    [[nodiscard]] const OwnedFailure* find(Failure failure, std::string_view subject) const;
};

/// All mistakes at once, in the order of the file, each with its line; `pools` are the names that rows
/// may use, beside "service".
[[nodiscard]] std::expected<Owners, std::vector<Error>> parse_owners(
    std::string_view text, std::string name, const std::vector<std::string_view>& pools);

/// A file that can't be read is the only error with `ErrorCode::kIo` or `kNotFound`.
[[nodiscard]] std::expected<Owners, std::vector<Error>> load_owners(
    const std::string& path, const std::vector<std::string_view>& pools);

}  // namespace sluice::gates
