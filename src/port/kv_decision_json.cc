#include "port/kv_decision_json.h"

#include <fmt/format.h>

#include <limits>

#include "base/limits.h"

namespace sluice::port {
namespace {

constexpr std::uint64_t kAnyCount = std::numeric_limits<std::uint64_t>::max();

/// The counts of a load, written and read in this order.
template <class Load, class Count>
void visit_counts(Load& load, Count&& count) {
    count("tokens", load.tokens);
    count("predicted_us", load.predicted_us);
    count("compute_us", load.compute_us);
    count("queue_us", load.queue_us);
    count("took_us", load.took_us);
}

void write(JsonWriter& writer, const KvLoad& load) {
    writer.begin_object();
    writer.field("source", load.source);
    writer.field("choice", load.choice);
    visit_counts(
        load, [&writer](std::string_view name, std::uint64_t value) { writer.field(name, value); });
    writer.end_object();
}

KvLoad read_load(JsonFields fields) {
    KvLoad load;
    fields.read("source", load.source, limits::kPortTextBytes);
    fields.read("choice", load.choice, limits::kPortTextBytes);
    visit_counts(load, [&fields](std::string_view name, std::uint64_t& value) {
        fields.read(name, value, 0, kAnyCount);
    });
    return load;
}

}  // namespace

void write(JsonWriter& writer, const KvDecision& decision) {
    writer.begin_object();
    writer.key("loads");
    writer.begin_array();
    for (const KvLoad& load : decision.loads) write(writer, load);
    writer.end_array();
    writer.field("compute_predicted_us", decision.compute_predicted_us);
    writer.field("compute_took_us", decision.compute_took_us);
    writer.end_object();
}

KvDecision read_kv_decision(JsonFields fields) {
    KvDecision decision;
    if (const auto* const loads = fields.array("loads", limits::kPortSources)) {
        for (const auto& value : *loads) {
            const std::string name = fmt::format("loads[{}]", decision.loads.size());
            const auto* const load = value.if_object();
            if (load == nullptr) {
                fields.fail(name, "this must be an object");
                break;
            }
            decision.loads.push_back(read_load(fields.inside(*load, name)));
        }
    }
    fields.read("compute_predicted_us", decision.compute_predicted_us, 0, kAnyCount);
    fields.read("compute_took_us", decision.compute_took_us, 0, kAnyCount);
    return decision;
}

}  // namespace sluice::port
