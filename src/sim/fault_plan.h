#pragma once

// What goes wrong in a simulation, and when: a TOML file of
//
//   [[fault]]
//   at = "1m"          # since the first request
//   kind = "crash"     # crash | stall | slow | other_model | restart | cancel
//   worker = 3         # from 0; "any" draws one by the seed; not for cancel
//   for = "10s"        # until it is as before; not for cancel
//   factor = 4.0       # slow: how many times as long its steps take
//   share = 0.9        # cancel: how many of the clients that wait for an answer go away
//
// `crash` loses what it computes and holds. `stall` computes nothing and says nothing. `other_model`
// crashes and comes back at once with a model that is not the pool's. `restart` is a planned one: the
// worker is drained first.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sim/event_queue.h"

namespace sluice::sim {

struct Fault {
    enum class Kind : std::uint8_t { kCrash, kStall, kSlow, kOtherModel, kRestart, kCancel };

    Duration at{};
    Kind kind = Kind::kCrash;
    std::uint32_t worker = 0;
    Duration duration{};
    double factor = 1.0;
    double share = 0.0;

    bool operator==(const Fault&) const = default;
};

/// In order of time. An error names the line; `workers` bounds the workers' numbers.
[[nodiscard]] Result<std::vector<Fault>> parse_faults(std::string_view text, std::string name,
                                                      std::uint32_t workers, std::uint64_t seed);
[[nodiscard]] Result<std::vector<Fault>> read_faults(const std::string& path, std::uint32_t workers,
                                                     std::uint64_t seed);

}  // namespace sluice::sim
