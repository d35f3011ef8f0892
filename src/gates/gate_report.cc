#include "gates/gate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

namespace sluice::gates {
namespace {

constexpr std::size_t kWidest = 44;

/// Long texts are cut for the table; JSON has all of it. Text from outside stays on its line.
std::string cell(std::string_view text) {
    std::string shown(text.substr(0, kWidest));
    std::ranges::replace_if(shown, [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
    return shown;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
    constexpr auto kNames = std::to_array<std::string_view>({"pass", "fail", "unknown"});
    return kNames[static_cast<std::size_t>(verdict)];
}

bool GateReport::passed() const {
    return std::ranges::none_of(
        items, [](const GateItem& item) { return item.verdict == Verdict::kFail; });
}

std::string to_text(const GateReport& report) {
    std::array<std::size_t, 4> width{7, 4, 8, 5};
    for (const GateItem& item : report.items) {
        width[0] = std::max(width[0], cell(item.subject).size());
        width[1] = std::max(width[1], cell(item.item).size());
        width[2] = std::max(width[2], cell(item.required).size());
        width[3] = std::max(width[3], cell(item.found).size());
    }
    const auto line = [&](std::string_view a, std::string_view b, std::string_view c,
                          std::string_view d, std::string_view e) {
        return fmt::format("{:<{}}  {:<{}}  {:<{}}  {:<{}}  {}\n", cell(a), width[0], cell(b),
                           width[1], cell(c), width[2], cell(d), width[3], e);
    };
    std::string text = line("subject", "item", "required", "found", "verdict");
    for (const GateItem& item : report.items) {
        text += line(item.subject, item.item, item.required, item.found, to_string(item.verdict));
        if (!item.advice.empty()) text += fmt::format("    {}\n", item.advice);
    }
    const auto count = [&](Verdict verdict) {
        return std::ranges::count(report.items, verdict, &GateItem::verdict);
    };
    return text + fmt::format("gate {}: {} ({} pass, {} fail, {} unknown)\n", report.gate,
                              report.passed() ? "passed" : "failed", count(Verdict::kPass),
                              count(Verdict::kFail), count(Verdict::kUnknown));
}

std::string to_json(const GateReport& report) {
    boost::json::array items;
    for (const GateItem& item : report.items) {
        boost::json::object object{{"subject", item.subject},
                                   {"item", item.item},
                                   {"required", item.required},
                                   {"found", item.found},
                                   {"verdict", to_string(item.verdict)}};
        if (!item.advice.empty()) object["advice"] = item.advice;
        items.push_back(std::move(object));
    }
    return boost::json::serialize(boost::json::object{
        {"gate", report.gate}, {"passed", report.passed()}, {"items", std::move(items)}});
}

}  // namespace sluice::gates
