// Any text is an owners file or a list of mistakes, and no mistake is without its place.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "gates/service_gate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace sluice;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto owners = gates::parse_owners(text, "fuzz.toml", {"service", "stable"});
    if (!owners) {
        SLUICE_ASSERT(!owners.error().empty());
        for (const Error& error : owners.error()) SLUICE_ASSERT(!error.place().empty());
        return 0;
    }
    const auto report = gates::check_service(default_service_config(), {}, *owners);
    SLUICE_ASSERT(!gates::to_text(report).empty());
    (void)gates::to_json(report);
    return 0;
}
