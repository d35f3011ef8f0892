#include "port/kv_orders.h"

#include <fmt/format.h>

#include <limits>

#include "base/limits.h"
#include "port/json_reader.h"
#include "port/json_writer.h"

namespace sluice::port {
namespace {

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

/// Parses an object and takes it apart with `read`.
template <class Order, class Read>
Result<Order> parse(std::string_view json, Read&& read) {
    JsonDocument document;
    const auto root = document.parse(json);
    if (!root) return std::unexpected(root.error());
    std::optional<Error> error;
    JsonFields fields(**root, {}, error);
    Order order;
    read(fields, order);
    if (error) return std::unexpected(*error);
    return order;
}

void read_texts(JsonFields& fields, std::string_view name, std::size_t count_max,
                std::size_t bytes_max, std::vector<std::string>& out) {
    const auto* const array = fields.array(name, count_max);
    if (array == nullptr) return;
    for (const auto& value : *array) {
        const auto* const text = value.if_string();
        if (text == nullptr || text->size() > bytes_max) {
            return fields.fail(fmt::format("{}[{}]", name, out.size()),
                               fmt::format("this must be a text of at most {} bytes", bytes_max));
        }
        out.emplace_back(text->data(), text->size());
    }
}

void read_text(JsonFields& fields, std::string_view name, std::optional<std::string>& out) {
    std::string text;
    fields.read(name, text, limits::kKvNameBytes);
    if (!text.empty()) out = std::move(text);
}

void read_drop(JsonFields& fields, KvDropOrder& order) {
    read_text(fields, "tenant", order.tenant);
    read_text(fields, "name", order.name);
    std::string retention;
    fields.read("class", retention, limits::kKvNameBytes);
    if (!retention.empty()) {
        order.retention = retention_from(retention);
        if (!order.retention) fields.fail("class", "this must be agent, chat or none");
    }
    if (order == KvDropOrder{}) fields.fail("tenant", "a tenant, a class or a name is missing");
}

template <class Texts>
void write_texts(JsonWriter& writer, std::string_view name, const Texts& texts) {
    writer.key(name);
    writer.begin_array();
    for (const std::string& text : texts) writer.value(text);
    writer.end_array();
}

}  // namespace

std::string to_json(const KvDropOrder& order) {
    std::string out;
    JsonWriter writer(out);
    writer.begin_object();
    if (order.tenant) writer.field("tenant", *order.tenant);
    if (order.retention) writer.field("class", to_string(*order.retention));
    if (order.name) writer.field("name", *order.name);
    writer.end_object();
    return out;
}

std::string to_json(const KvPinOrder& order) {
    std::string out;
    JsonWriter writer(out);
    writer.begin_object();
    write_texts(writer, "names", order.names);
    writer.field("seconds", order.seconds);
    writer.end_object();
    return out;
}

std::string to_json(const KvNodesOrder& order) {
    std::string out;
    JsonWriter writer(out);
    writer.begin_object();
    writer.field("epoch", order.epoch);
    write_texts(writer, "nodes", order.nodes);
    writer.end_object();
    return out;
}

std::string to_json(const KvBoundsOrder& order) {
    std::string out;
    JsonWriter writer(out);
    writer.begin_object();
    writer.key("tenants");
    writer.begin_object();
    for (const auto& [tenant, bytes] : order.tenants) writer.field(tenant, bytes);
    writer.end_object();
    writer.end_object();
    return out;
}

std::string to_json(const KvOrderResult& result) {
    std::string out;
    JsonWriter writer(out);
    writer.begin_object();
    writer.field("done", result.done);
    writer.field("bytes", result.bytes);
    writer.field("failed", result.failed);
    writer.end_object();
    return out;
}

Result<KvDropOrder> parse_kv_drop_order(std::string_view json) {
    return parse<KvDropOrder>(json, read_drop);
}

Result<KvPinOrder> parse_kv_pin_order(std::string_view json) {
    return parse<KvPinOrder>(json, [](JsonFields& fields, KvPinOrder& order) {
        read_texts(fields, "names", kKvOrderNames, limits::kKvNameBytes, order.names);
        fields.read("seconds", order.seconds, 0, limits::kKvPinSeconds);
    });
}

Result<KvNodesOrder> parse_kv_nodes_order(std::string_view json) {
    return parse<KvNodesOrder>(json, [](JsonFields& fields, KvNodesOrder& order) {
        fields.read("epoch", order.epoch, 0, kAny);
        read_texts(fields, "nodes", limits::kKvStores, limits::kPortTextBytes, order.nodes);
    });
}

Result<KvBoundsOrder> parse_kv_bounds_order(std::string_view json) {
    return parse<KvBoundsOrder>(json, [](JsonFields& fields, KvBoundsOrder& order) {
        const auto* const tenants = fields.object("tenants", Need::kRequired);
        if (tenants == nullptr) return;
        if (tenants->size() > kKvOrderTenants)
            return fields.fail("tenants", fmt::format("there are more than {}", kKvOrderTenants));
        JsonFields inside = fields.inside(*tenants, "tenants");
        for (const auto& each : *tenants) {
            const std::string_view name(each.key().data(), each.key().size());
            if (name.size() > limits::kKvNameBytes)
                return fields.fail("tenants", "a tenant's name is too long");
            inside.read(name, order.tenants[std::string(name)], 1, kAny);
        }
    });
}

Result<KvOrderResult> parse_kv_order_result(std::string_view json) {
    return parse<KvOrderResult>(json, [](JsonFields& fields, KvOrderResult& result) {
        fields.read("done", result.done, 0, kAny);
        fields.read("bytes", result.bytes, 0, kAny);
        fields.read("failed", result.failed, 0, kAny);
    });
}

}  // namespace sluice::port
