#include "gates/service_gate.h"

#include <algorithm>
#include <utility>

namespace sluice::gates {
namespace {

ServiceItem join(FailureMode mode, const Owners& owners) {
    const OwnedFailure* const row = owners.find(mode.failure, mode.subject);
    ServiceItem item{.mode = std::move(mode), .owner = owners.owner};
    if (row != nullptr) {
        if (!row->owner.empty()) item.owner = row->owner;
        item.accepted = row->accepted;
        // What people say comes first: they know what the configuration does, too.
        if (!row->caught_by.empty()) item.mode.caught_by = row->caught_by;
        if (!row->rollback.empty()) item.mode.rollback = row->rollback;
    }
    // Nobody needs to catch or undo what is accepted, but somebody must have accepted it.
    if (item.mode.caught_by.empty() && item.accepted.empty()) item.blank.emplace_back("caught_by");
    if (item.owner.empty()) item.blank.emplace_back("owner");
    if (item.mode.rollback.empty() && item.accepted.empty()) item.blank.emplace_back("rollback");
    item.verdict = item.blank.empty() && !item.mode.present ? Verdict::kPass : Verdict::kFail;
    return item;
}

void add_layer(const OwnLayer& layer, const ServiceConfig& config, const Owners& owners,
               std::vector<LayerItem>& items) {
    const bool owned = !layer.owner.empty() || !owners.owner.empty();
    for (const Interface* const interface : layer.does) {
        const bool settled =
            interface->decision == Decision::kKeep || layer.settled.contains(interface->name);
        items.push_back({.layer = &layer,
                         .interface = interface,
                         .advice = advice_for(*interface, config),
                         .verdict = settled && owned ? Verdict::kPass : Verdict::kFail});
    }
}

}  // namespace

bool ServiceReport::passed() const {
    const auto passes = [](const auto& item) { return item.verdict == Verdict::kPass; };
    return std::ranges::all_of(failures, passes) && std::ranges::all_of(layers, passes);
}

ServiceReport check_service(const ServiceConfig& config, const ServiceFacts& facts,
                            const Owners& owners) {
    ServiceReport report;
    for (FailureMode& mode : failure_modes(config, facts))
        report.failures.push_back(join(std::move(mode), owners));
    for (const OwnLayer& layer : owners.layers) add_layer(layer, config, owners, report.layers);
    return report;
}

}  // namespace sluice::gates
