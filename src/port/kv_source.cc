#include "port/kv_source.h"

#include "base/limits.h"

namespace sluice::port {
namespace {

/// No block has more tokens; what a worker's own has is the worker's to check.
constexpr std::uint64_t kTailTokens = 1'048'576;

}  // namespace

void write_fields(JsonWriter& writer, const KvSource& source) {
    if (!source.url.empty()) writer.field("url", source.url);
    if (!source.hold.empty()) writer.field("hold", source.hold);
    writer.digests("keys", source.keys);
    writer.field("tail_tokens", source.tail_tokens);
}

void read_fields(JsonFields& fields, KvSource& source) {
    fields.read("url", source.url, limits::kPortTextBytes);
    fields.read_optional_rid("hold", source.hold);
    fields.read_digests("keys", source.keys, limits::kPortBlockKeys);
    fields.read("tail_tokens", source.tail_tokens, 0, kTailTokens);
}

}  // namespace sluice::port
