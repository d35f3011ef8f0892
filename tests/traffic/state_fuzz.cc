// Whatever the state file holds: an error or a state that is written as it was read. The checksum is
// put right first, or nothing behind it would ever be reached.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/hash.h"
#include "traffic/state.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view content(reinterpret_cast<const char*>(data), size);
    [[maybe_unused]] const auto raw = sluice::traffic::parse_state(content);
    const std::string text =
        sluice::to_hex(sluice::sha256(content)).substr(0, 32) + " " + std::string(content) + "\n";
    const auto state = sluice::traffic::parse_state(text);
    if (state && sluice::traffic::parse_state(sluice::traffic::to_text(*state)) != *state) abort();
    return 0;
}
