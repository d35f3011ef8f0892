#include "port/server_info.h"

#include <fmt/format.h>

#include <limits>

#include "base/limits.h"
#include "port/json_reader.h"
#include "port/json_writer.h"

namespace sluice::port {
namespace {

constexpr std::uint64_t kAny32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kAny64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::string_view kExact = "exact";
constexpr std::string_view kApproximate = "approximate";

void write(JsonWriter& writer, const KvComponent& component) {
    writer.begin_object();
    writer.field("name", component.name);
    writer.field("quantum", component.quantum);
    writer.field("replay", component.replay);
    writer.field("min_hit", component.min_hit);
    writer.field("hit_exactness", component.hit_exact ? kExact : kApproximate);
    writer.field("shard", component.shard);
    writer.field("layout", component.layout);
    writer.field("dtype", component.dtype);
    writer.end_object();
}

KvComponent read_component(JsonFields fields) {
    KvComponent component;
    fields.read("name", component.name, limits::kPortTextBytes);
    fields.read("quantum", component.quantum, 1, kAny32);
    fields.read("replay", component.replay, 0, kAny32);
    fields.read("min_hit", component.min_hit, 0, kAny32);
    fields.read("shard", component.shard, 0, kAny32);
    fields.read("layout", component.layout, limits::kPortTextBytes);
    fields.read("dtype", component.dtype, limits::kPortTextBytes);
    std::string exactness(kExact);
    fields.read("hit_exactness", exactness, limits::kPortTextBytes);
    component.hit_exact = exactness == kExact;
    if (!component.hit_exact && exactness != kApproximate) {
        fields.fail("hit_exactness",
                    fmt::format("this must be \"{}\" or \"{}\"", kExact, kApproximate));
    }
    return component;
}

void read_components(JsonFields& fields, std::vector<KvComponent>& out) {
    const auto* const components = fields.array("kv_components", limits::kPortKvComponents);
    if (components == nullptr) return;
    for (const auto& value : *components) {
        const std::string name = fmt::format("kv_components[{}]", out.size());
        const auto* const object = value.if_object();
        if (object == nullptr) {
            fields.fail(name, "this must be an object");
            return;
        }
        out.push_back(read_component(fields.inside(*object, name)));
    }
}

/// The fields that are plain texts: one list for both directions.
template <class Info, class Visit>
void visit_texts(Info& info, Visit visit) {
    visit("engine", info.engine);
    visit("model", info.model);
    visit("fingerprint", info.fingerprint);
    visit("numerics_id", info.numerics_id);
    visit("tokenizer_digest", info.tokenizer_digest);
    visit("dialect", info.dialect);
    visit("failure_group", info.failure_group);
    visit("version", info.version);
    visit("commit", info.commit);
    visit("build_flags", info.build_flags);
    visit("hardware", info.hardware);
    visit("driver", info.driver);
    visit("topology", info.topology);
    visit("kv_reuse", info.kv_reuse);
    visit("threads", info.threads);
}

}  // namespace

std::string to_json(const ServerInfo& info) {
    std::string out;
    JsonWriter writer(out);
    writer.begin_object();
    visit_texts(info,
                [&writer](const char* name, const std::string& text) { writer.field(name, text); });
    writer.key("kv_components");
    writer.begin_array();
    for (const KvComponent& component : info.kv_components) write(writer, component);
    writer.end_array();
    writer.field("block_tokens", info.block_tokens);
    writer.field("context_length", info.context_length);
    writer.field("pool_tokens", info.pool_tokens);
    writer.field("attention_tokens", info.attention_tokens);
    writer.field("max_running", info.max_running);
    writer.field("max_waiting", info.max_waiting);
    writer.field("vocabulary", info.vocabulary);
    writer.field("dp_ranks", info.dp_ranks);
    writer.field("device_memory_bytes", info.device_memory_bytes);
    writer.end_object();
    return out;
}

Result<ServerInfo> parse_server_info(std::string_view json) {
    JsonDocument document;
    const auto root = document.parse(json);
    if (!root) return std::unexpected(root.error());
    std::optional<Error> error;
    JsonFields fields(**root, {}, error);
    ServerInfo info;
    visit_texts(info, [&fields](const char* name, std::string& text) {
        fields.read(name, text, limits::kPortTextBytes);
    });
    read_components(fields, info.kv_components);
    fields.read("block_tokens", info.block_tokens, 1, kAny32);
    fields.read("context_length", info.context_length, 0, kAny64);
    fields.read("pool_tokens", info.pool_tokens, 0, kAny64);
    fields.read("attention_tokens", info.attention_tokens, 0, kAny64);
    fields.read("max_running", info.max_running, 0, kAny32);
    fields.read("max_waiting", info.max_waiting, 0, kAny32);
    fields.read("vocabulary", info.vocabulary, 0, kAny32);
    fields.read("dp_ranks", info.dp_ranks, 1, limits::kDpRanks);
    fields.read("device_memory_bytes", info.device_memory_bytes, 0, kAny64);
    if (error) return std::unexpected(*error);
    return info;
}

}  // namespace sluice::port
