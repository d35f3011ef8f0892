// Any text is a configuration or a list of mistakes, and what is shown reads back.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "base/service_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto config = sluice::parse_service_config(text, "fuzz.toml");
    if (!config) {
        SLUICE_ASSERT(!config.error().empty());
        return 0;
    }
    const auto again = sluice::parse_service_config(sluice::render(*config), "again.toml");
    SLUICE_ASSERT(again.has_value());
    SLUICE_ASSERT(sluice::rows(*again).size() == sluice::rows(*config).size());
    return 0;
}
