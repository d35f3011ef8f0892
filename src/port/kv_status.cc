#include "port/kv_status.h"

#include <fmt/format.h>

#include <limits>

#include "base/limits.h"
#include "port/json_reader.h"
#include "port/json_writer.h"

namespace sluice::port {
namespace {

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

using Counters = std::map<std::string, std::uint64_t>;

void write(JsonWriter& writer, std::string_view name, const Counters& counters) {
    writer.key(name);
    writer.begin_object();
    for (const auto& [what, count] : counters) writer.field(what, count);
    writer.end_object();
}

template <class Row, class WriteRow>
void write_rows(JsonWriter& writer, std::string_view name, const std::vector<Row>& rows,
                WriteRow&& write_row) {
    writer.key(name);
    writer.begin_array();
    for (const Row& row : rows) {
        writer.begin_object();
        write_row(row);
        writer.end_object();
    }
    writer.end_array();
}

void write(JsonWriter& writer, const KvTierStatus& tier) {
    writer.field("tier", tier.tier);
    writer.field("bytes", tier.bytes);
    writer.field("limit_bytes", tier.limit_bytes);
    writer.field("entries", tier.entries);
    writer.field("hits", tier.hits);
    writer.field("misses", tier.misses);
    writer.field("corrupt", tier.corrupt);
    write(writer, "evictions", tier.evictions);
    write(writer, "counters", tier.counters);
    write_rows(writer, "holdings", tier.holdings, [&](const KvHolding& holding) {
        writer.field("tenant", holding.tenant);
        writer.field("class", holding.retention);
        writer.field("bytes", holding.bytes);
        writer.field("entries", holding.entries);
    });
}

void read(JsonFields& fields, std::string_view name, Counters& out) {
    const auto* const object = fields.object(name);
    if (object == nullptr) return;
    if (object->size() > kKvStatusRows) {
        return fields.fail(name, fmt::format("this has more than {} entries", kKvStatusRows));
    }
    JsonFields inside = fields.inside(*object, name);
    for (const auto& each : *object)
        inside.read({each.key().data(), each.key().size()}, out[std::string(each.key())], 0, kAny);
}

template <class Row, class ReadRow>
void read_rows(JsonFields& fields, std::string_view name, std::size_t count_max,
               std::vector<Row>& out, ReadRow&& read_row) {
    const auto* const array = fields.array(name, count_max);
    if (array == nullptr) return;
    for (const auto& value : *array) {
        const std::string place = fmt::format("{}[{}]", name, out.size());
        const auto* const object = value.if_object();
        if (object == nullptr) return fields.fail(place, "this must be an object");
        JsonFields inside = fields.inside(*object, place);
        read_row(inside, out.emplace_back());
    }
}

void read_holding(JsonFields& fields, KvHolding& holding) {
    fields.read("tenant", holding.tenant, limits::kPortSaltBytes);
    fields.read("class", holding.retention, limits::kPortSaltBytes);
    fields.read("bytes", holding.bytes, 0, kAny);
    fields.read("entries", holding.entries, 0, kAny);
}

void read_tier(JsonFields& fields, KvTierStatus& tier) {
    fields.read("tier", tier.tier, limits::kPortSaltBytes);
    fields.read("bytes", tier.bytes, 0, kAny);
    fields.read("limit_bytes", tier.limit_bytes, 0, kAny);
    fields.read("entries", tier.entries, 0, kAny);
    fields.read("hits", tier.hits, 0, kAny);
    fields.read("misses", tier.misses, 0, kAny);
    fields.read("corrupt", tier.corrupt, 0, kAny);
    read(fields, "evictions", tier.evictions);
    read(fields, "counters", tier.counters);
    read_rows(fields, "holdings", kKvStatusHoldings, tier.holdings, read_holding);
}

void read_store(JsonFields& fields, KvStoreStatus& store) {
    fields.read("url", store.url, limits::kPortTextBytes);
    fields.read("kind", store.kind, limits::kPortSaltBytes);
    fields.read("reachable", store.reachable);
    read(fields, "counters", store.counters);
}

}  // namespace

std::string to_json(const KvStatus& status) {
    std::string out;
    JsonWriter writer(out);
    writer.begin_object();
    writer.field("epoch", status.epoch);
    write_rows(writer, "tiers", status.tiers,
               [&](const KvTierStatus& tier) { write(writer, tier); });
    write_rows(writer, "stores", status.stores, [&](const KvStoreStatus& store) {
        writer.field("url", store.url);
        writer.field("kind", store.kind);
        writer.field("reachable", store.reachable);
        write(writer, "counters", store.counters);
    });
    writer.field("pinned", status.pinned);
    writer.end_object();
    return out;
}

Result<KvStatus> parse_kv_status(std::string_view json) {
    JsonDocument document;
    const auto root = document.parse(json);
    if (!root) return std::unexpected(root.error());
    std::optional<Error> error;
    JsonFields fields(**root, {}, error);
    KvStatus status;
    fields.read("epoch", status.epoch, 0, kAny);
    read_rows(fields, "tiers", kKvStatusRows, status.tiers, read_tier);
    read_rows(fields, "stores", kKvStatusRows, status.stores, read_store);
    fields.read("pinned", status.pinned, 0, kAny);
    if (error) return std::unexpected(*error);
    return status;
}

}  // namespace sluice::port
