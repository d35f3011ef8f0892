#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trace/load_plan.h"
#include "trace/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto trace = sluice::trace::parse_trace(text, "fuzz"))
        (void)plan_load(*trace, {.requests = 100, .rate = 1.0});
    (void)sluice::trace::parse_mix(text);
    return 0;
}
