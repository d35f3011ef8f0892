#include "kv/load_choice.h"

#include <algorithm>

namespace sluice::kv {
namespace {

/// Timers and thread switches on the way of any load.
constexpr std::chrono::milliseconds kLeast{20};
/// The same for a look-up, which is one small question.
constexpr std::chrono::milliseconds kLeastLookUp{5};
/// Of computing, what a look-up may take.
constexpr int kLookUpShare = 4;

}  // namespace

std::string_view to_string(LoadChoice choice) {
    switch (choice) {
        case LoadChoice::kLoad: return "load";
        case LoadChoice::kRecompute: return "recompute";
        case LoadChoice::kProbe: break;
    }
    return "probe";
}

LoadChoice choose(const LoadPrediction& prediction, std::optional<ForcedChoice> forced,
                  bool speed_is_stale) {
    if (forced) return *forced == ForcedChoice::kLoad ? LoadChoice::kLoad : LoadChoice::kRecompute;
    if (prediction.load - std::min(prediction.load, prediction.queue) < prediction.compute)
        return LoadChoice::kLoad;
    return speed_is_stale ? LoadChoice::kProbe : LoadChoice::kRecompute;
}

std::chrono::nanoseconds patience(const LoadPrediction& prediction, std::chrono::nanoseconds most) {
    return std::clamp<std::chrono::nanoseconds>(prediction.queue + prediction.compute, kLeast,
                                                std::max<std::chrono::nanoseconds>(most, kLeast));
}

std::chrono::nanoseconds look_up_patience(const LoadPrediction& prediction,
                                          std::chrono::nanoseconds most) {
    return std::clamp<std::chrono::nanoseconds>(
        prediction.queue + prediction.compute / kLookUpShare, kLeastLookUp,
        std::max<std::chrono::nanoseconds>(most, kLeastLookUp));
}

}  // namespace sluice::kv
