// Rows and manifests that may come from a damaged file or another Sluice: nothing crashes, and what
// can be read is read the same after it was written again.

#include <cstdint>
#include <cstdlib>

#include "record/request_row.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace sluice::record;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    (void)parse_version_manifest(text);
    const auto once = parse_row(text);
    if (!once) return 0;
    const std::string written = to_json(once->row, once->cost);
    const auto twice = parse_row(written);
    if (!twice || to_json(twice->row, twice->cost) != written) std::abort();
    return 0;
}
