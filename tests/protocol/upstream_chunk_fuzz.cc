// Any bytes as an event of an upstream's stream, with and without its words: the facts are the same.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "protocol/upstream_chunk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace sluice::protocol;
    const std::string_view json(reinterpret_cast<const char*>(data), size);
    const UpstreamChunk facts = read_upstream_chunk(json, ChunkDetail::kFacts);
    const UpstreamChunk full = read_upstream_chunk(json, ChunkDetail::kContent);
    // A broken string may be seen only by who reads it.
    if (full.is_object && !facts.is_object) std::abort();
    if (!facts.is_object && (facts.has_error || facts.has_choices)) std::abort();
    return 0;
}
