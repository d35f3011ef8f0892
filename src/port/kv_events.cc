#include "port/kv_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/limits.h"
#include "port/json_reader.h"
#include "port/json_writer.h"

namespace sluice::port {
namespace {

constexpr std::uint64_t kAny64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kEpochBytes = 64;
constexpr std::array<std::string_view, 3> kTypes{"stored", "removed", "cleared"};

void write(JsonWriter& writer, const KvEvent& event) {
    writer.begin_object();
    writer.field("type", kTypes[static_cast<std::size_t>(event.type)]);
    if (event.type == KvEventType::kStored) {
        writer.key("parent");
        if (event.parent) {
            writer.value(to_hex(*event.parent));
        } else {
            writer.null();
        }
    }
    if (event.type != KvEventType::kCleared) writer.digests("keys", event.keys);
    if (event.type == KvEventType::kStored) writer.field("tier", event.tier);
    writer.end_object();
}

/// It goes back into a URL as it is.
void read_epoch(JsonFields& fields, std::string& out) {
    fields.read("epoch", out, kEpochBytes);
    const bool plain = out.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (out.empty() || !plain) fields.fail("epoch", "this must be lower-case hexadecimal digits");
}

KvEvent read_event(JsonFields fields, std::size_t keys_left) {
    KvEvent event;
    std::string type;
    fields.read("type", type, limits::kPortTextBytes);
    const auto* const found = std::ranges::find(kTypes, type);
    if (found == kTypes.end()) {
        fields.fail("type", R"(this must be "stored", "removed" or "cleared")");
        return event;
    }
    event.type = static_cast<KvEventType>(found - kTypes.begin());
    if (event.type == KvEventType::kCleared) return event;
    fields.read_digests("keys", event.keys, keys_left);
    if (event.type == KvEventType::kRemoved) return event;
    fields.read_digest("parent", event.parent);
    fields.read("tier", event.tier, limits::kPortTextBytes);
    return event;
}

void read_events(JsonFields& fields, std::vector<KvEvent>& out) {
    const auto* const events = fields.array("events", limits::kKvEventsAnswered);
    if (events == nullptr) return;
    std::size_t keys_left = limits::kPortBlockKeys;
    for (const auto& value : *events) {
        const std::string name = fmt::format("events[{}]", out.size());
        const auto* const object = value.if_object();
        if (object == nullptr) return fields.fail(name, "this must be an object");
        out.push_back(read_event(fields.inside(*object, name), keys_left));
        if (fields.failed()) return;
        keys_left -= out.back().keys.size();
    }
}

}  // namespace

KvEventQuery KvEventQuery::after(const KvEventPage& answer) const {
    KvEventQuery next = *this;
    next.epoch = answer.epoch;
    next.from = answer.next;
    next.page = answer.page;
    return next;
}

std::string KvEventQuery::target() const {
    std::string text = fmt::format("/kv_events?from={}&wait_ms={}", from, wait_ms);
    if (!epoch.empty()) text += fmt::format("&epoch={}", epoch);
    if (page) text += fmt::format("&page={}", *page);
    if (rank > 0) text += fmt::format("&rank={}", rank);
    return text;
}

std::string to_json(const KvEventPage& page) {
    std::string out;
    JsonWriter writer(out);
    writer.begin_object();
    writer.field("epoch", page.epoch);
    writer.field("next", page.next);
    if (page.page) writer.field("page", *page.page);
    writer.field("reset", page.reset);
    writer.key("events");
    writer.begin_array();
    for (const KvEvent& event : page.events) write(writer, event);
    writer.end_array();
    writer.end_object();
    return out;
}

Result<KvEventPage> parse_kv_event_page(std::string_view json) {
    JsonDocument document;
    const auto root = document.parse(json);
    if (!root) return std::unexpected(root.error());
    std::optional<Error> error;
    JsonFields fields(**root, {}, error);
    KvEventPage page;
    read_epoch(fields, page.epoch);
    fields.read("next", page.next, 0, kAny64);
    std::uint64_t more = kAny64;
    fields.read("page", more, 0, kAny64 - 1);
    if (more != kAny64) page.page = more;
    fields.read("reset", page.reset);
    read_events(fields, page.events);
    if (error) return std::unexpected(*error);
    return page;
}

}  // namespace sluice::port
