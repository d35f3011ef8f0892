#pragma once

// Load blocks, or compute them? Whichever is predicted to give the first token sooner. What is loaded
// while others are computed costs nothing: only the part of a load that outlasts the queue counts.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::kv {

enum class LoadChoice : std::uint8_t {
    kLoad,
    kRecompute,
    kProbe,  ///< Computing seems sooner, but nobody has looked for long: load a little, and learn.
};
[[nodiscard]] std::string_view to_string(LoadChoice choice);

/// For tests and measurements; nothing: by prediction.
enum class ForcedChoice : std::uint8_t { kLoad, kRecompute };

struct LoadPrediction {
    std::chrono::nanoseconds queue{};    ///< Until the engine could begin to compute.
    std::chrono::nanoseconds compute{};  ///< Of what would be loaded.
    std::chrono::nanoseconds load{};
};

[[nodiscard]] LoadChoice choose(const LoadPrediction& prediction,
                                std::optional<ForcedChoice> forced, bool speed_is_stale);

/// A load that takes longer than this is of no use any more: computing would have been as quick.
[[nodiscard]] std::chrono::nanoseconds patience(const LoadPrediction& prediction,
                                                std::chrono::nanoseconds most);

/// Longest that a prompt waits to hear what tiers have of it, if `prediction` is of all that it lacks: a
/// look-up finds nothing often enough, so it may cost a part only of what it could save.
[[nodiscard]] std::chrono::nanoseconds look_up_patience(const LoadPrediction& prediction,
                                                        std::chrono::nanoseconds most);

}  // namespace sluice::kv
