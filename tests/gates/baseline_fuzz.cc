#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gates/baseline.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    using namespace sluice::gates;
    if (const auto prompts = parse_prompts(text, "fuzz"))
        for (const auto& prompt : *prompts) (void)request_body(prompt, "m");
    (void)parse_outputs(text, "fuzz");
    if (const auto baseline = parse_baseline(text, "fuzz")) (void)to_json_lines(*baseline);
    return 0;
}
