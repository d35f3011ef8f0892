#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "gates/service_gate.h"

namespace sluice::gates {
namespace {

namespace json = boost::json;

std::string_view or_nothing(std::string_view text) { return text.empty() ? "nothing" : text; }
std::string_view or_nobody(std::string_view text) { return text.empty() ? "nobody" : text; }

std::string caught_by(const ServiceItem& item) {
    const FailureMode& mode = item.mode;
    if (mode.present) return fmt::format("it is so now: {}", mode.advice);
    if (!item.accepted.empty()) return fmt::format("accepted: {}", item.accepted);
    const std::string place = mode.place.empty() ? "" : fmt::format(" ({})", mode.place);
    return fmt::format("{}{}", or_nothing(mode.caught_by), place);
}

std::string to_text(const ServiceItem& item) {
    const FailureMode& mode = item.mode;
    const FailureText& text = text_of(mode.failure);
    std::string lines = fmt::format("{}  {}  {}: {}\n", to_string(item.verdict), mode.subject,
                                    text.name, text.what);
    lines += fmt::format("      caught by: {}\n", caught_by(item));
    lines += fmt::format("      owner:     {}\n", or_nobody(item.owner));
    lines += fmt::format("      rollback:  {}\n", or_nothing(mode.rollback));
    const bool to_do = !mode.advice.empty() && !mode.present;
    if (to_do && item.verdict == Verdict::kFail)
        lines += fmt::format("      to do:     {}\n", mode.advice);
    return lines;
}

std::string to_text(const LayerItem& item) {
    return fmt::format("{}  {}  {}: {}\n      owner:     {}\n      why:       {}\n",
                       to_string(item.verdict), item.layer->name, item.interface->name,
                       to_string(item.interface->decision), or_nobody(item.layer->owner),
                       item.advice);
}

template <class Item>
std::string texts(const std::vector<Item>& items, Verdict verdict) {
    std::string text;
    for (const Item& item : items)
        if (item.verdict == verdict) text += to_text(item);
    return text;
}

json::object to_object(const ServiceItem& item) {
    const FailureMode& mode = item.mode;
    const FailureText& text = text_of(mode.failure);
    json::object object{{"subject", mode.subject},     {"item", text.name},
                        {"what", text.what},           {"verdict", to_string(item.verdict)},
                        {"caught_by", mode.caught_by}, {"place", mode.place},
                        {"owner", item.owner},         {"rollback", mode.rollback},
                        {"present", mode.present}};
    json::array blank;
    for (const std::string_view name : item.blank) blank.emplace_back(name);
    object["blank"] = std::move(blank);
    if (!item.accepted.empty()) object["accepted"] = item.accepted;
    if (!mode.advice.empty()) object["advice"] = mode.advice;
    return object;
}

json::object to_object(const LayerItem& item) {
    return {{"subject", item.layer->name},        {"kind", to_string(item.layer->kind)},
            {"item", item.interface->name},       {"decision", to_string(item.interface->decision)},
            {"owner", item.layer->owner},         {"place", item.layer->place},
            {"verdict", to_string(item.verdict)}, {"advice", item.advice}};
}

}  // namespace

std::string to_text(const ServiceReport& report) {
    std::string text;
    for (const Verdict verdict : {Verdict::kFail, Verdict::kPass})
        text += texts(report.failures, verdict) + texts(report.layers, verdict);
    const auto fails = [](const auto& item) { return item.verdict == Verdict::kFail; };
    const auto gaps = std::ranges::count_if(report.failures, fails);
    const auto open = std::ranges::count_if(report.layers, fails);
    return text +
           fmt::format(
               "gate service: {} ({} of {} failures have gaps, {} of {} interfaces are open)\n",
               report.passed() ? "passed" : "failed", gaps, report.failures.size(), open,
               report.layers.size());
}

std::string to_json(const ServiceReport& report) {
    json::array items;
    for (const ServiceItem& item : report.failures) items.push_back(to_object(item));
    json::array layers;
    for (const LayerItem& item : report.layers) layers.push_back(to_object(item));
    return json::serialize(json::object{{"gate", "service"},
                                        {"passed", report.passed()},
                                        {"items", std::move(items)},
                                        {"layers", std::move(layers)}});
}

std::string owners_template(const ServiceReport& report) {
    std::string text = "owner = \"\"  # of all that no row names\n";
    for (const ServiceItem& item : report.failures) {
        const bool only_owner = item.blank.size() == 1 && item.blank.front() == "owner";
        if (item.blank.empty() || only_owner) continue;
        text += fmt::format("\n# {}\n", text_of(item.mode.failure).what);
        if (!item.mode.advice.empty()) text += fmt::format("# {}\n", item.mode.advice);
        text += fmt::format("[[failure]]\nname = \"{}\"\n", text_of(item.mode.failure).name);
        if (item.mode.subject != kWholeService)
            text += fmt::format("pool = \"{}\"\n", item.mode.subject);
        for (const std::string_view name : item.blank) text += fmt::format("{} = \"\"\n", name);
    }
    return text;
}

}  // namespace sluice::gates
