#pragma once

// What one leg of a request does on a worker, and what a worker is for.

#include <cstdint>
#include <string_view>

namespace sluice::routing {

enum class LegPhase : std::uint8_t {
    kFull,  ///< Everything from the prompt to the last token. Of a worker: it does whatever comes.
    kEncode,   ///< Images to embeddings.
    kPrefill,  ///< The prompt up to the first token; what was computed is held for a decode leg.
    kDecode,   ///< From there on.
};

inline constexpr int kLegPhases = 4;

/// "full", "encode", "prefill" or "decode".
[[nodiscard]] constexpr std::string_view to_string(LegPhase phase) {
    switch (phase) {
        case LegPhase::kFull: return "full";
        case LegPhase::kEncode: return "encode";
        case LegPhase::kPrefill: return "prefill";
        case LegPhase::kDecode: return "decode";
    }
    return "full";
}

}  // namespace sluice::routing
