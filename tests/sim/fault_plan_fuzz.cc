// Whatever a faults file or an engine's parameters say, reading them ends with values or an error with
// a place.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "sim/engine_parameters.h"
#include "sim/fault_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    constexpr std::uint32_t kWorkers = 3;
    const auto faults = sluice::sim::parse_faults(text, "faults.toml", kWorkers, 1);
    if (faults) {
        for (const sluice::sim::Fault& fault : *faults)
            if (fault.worker >= kWorkers || fault.share > 1.0 || fault.factor < 1.0) std::abort();
    } else if (faults.error().place().empty()) {
        std::abort();
    }
    const auto engine = sluice::sim::parse_engine_parameters(text, "engine.toml");
    if (engine) {
        if (engine->step_us <= 0.0 || engine->blocks == 0) std::abort();
        const auto again = sluice::sim::parse_engine_parameters(to_toml(*engine), "again.toml");
        if (!again || *again != *engine) std::abort();
    }
    return 0;
}
