// Any text as a block's name, and any tenant in one.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "kv/block_name.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace sluice::kv;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    // What is a name is written in one way only, or two keys could be one block.
    if (const auto name = parse_block_name(text)) SLUICE_ASSERT(to_wire(*name) == text);
    BlockName own{.tenant = std::string(text), .retention = Retention::kAgent, .key = {}};
    const auto again = parse_block_name(to_wire(own));
    SLUICE_ASSERT(text.empty() || (again.has_value() && *again == own));
    return 0;
}
