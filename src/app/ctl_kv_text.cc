#include "app/ctl_kv_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value_to.hpp>
#include <map>
#include <tuple>

#include "record/card_numbers.h"

namespace sluice::app {
namespace {

namespace json = boost::json;

/// What a gateway, or whoever it asked, called something, safe to print.
std::string text(const json::object& object, std::string_view key) {
    const json::value* const value = object.if_contains(key);
    if (value == nullptr || !value->is_string()) return {};
    return record::plain({value->get_string().data(), value->get_string().size()});
}

std::uint64_t number(const json::object& object, std::string_view key) {
    return object.at(key).to_number<std::uint64_t>();
}

std::string size(std::uint64_t bytes) { return bytes == 0 ? "0" : record::format_memory(bytes); }

/// "stable-0", or a node's URL.
std::string name_of(const json::object& holder) {
    const std::string name = text(holder, "name");
    return name.empty() ? text(holder, "url") : name;
}

std::uint64_t sum(const json::object& counts) {
    std::uint64_t total = 0;
    for (const auto& each : counts) total += each.value().to_number<std::uint64_t>();
    return total;
}

std::string tiers_text(const json::array& holders) {
    std::size_t width = 6;
    for (const json::value& holder : holders)
        width = std::max(width, name_of(holder.as_object()).size());
    std::string rows =
        fmt::format("{:<{}}  {:<9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>7}\n", "holder", width,
                    "tier", "bytes", "of", "blocks", "hits", "misses", "evicted", "corrupt");
    for (const json::value& value : holders) {
        const json::object& holder = value.as_object();
        const std::string name = name_of(holder);
        if (const std::string why = text(holder, "error"); !why.empty()) {
            rows += fmt::format("{:<{}}  {}: {}\n", name, width,
                                holder.at("foreign").as_bool() ? "foreign" : "no answer", why);
            continue;
        }
        for (const json::value& each : holder.at("status").as_object().at("tiers").as_array()) {
            const json::object& tier = each.as_object();
            const std::uint64_t limit = number(tier, "limit_bytes");
            rows +=
                fmt::format("{:<{}}  {:<9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>7}\n", name,
                            width, text(tier, "tier"), size(number(tier, "bytes")),
                            limit == 0 ? record::kNothing : size(limit), number(tier, "entries"),
                            number(tier, "hits"), number(tier, "misses"),
                            sum(tier.at("evictions").as_object()), number(tier, "corrupt"));
        }
    }
    return rows;
}

/// All holders together: a block that lies in several places counts in each.
std::string holdings_text(const json::array& holders) {
    std::map<std::tuple<std::string, std::string, std::string>,
             std::pair<std::uint64_t, std::uint64_t>>
        sums;
    for (const json::value& holder : holders) {
        const json::value& status = holder.as_object().at("status");
        if (!status.is_object()) continue;
        for (const json::value& tier : status.as_object().at("tiers").as_array()) {
            for (const json::value& each : tier.as_object().at("holdings").as_array()) {
                const json::object& holding = each.as_object();
                auto& [bytes, entries] = sums[{text(holding, "tenant"), text(holding, "class"),
                                               text(tier.as_object(), "tier")}];
                bytes += number(holding, "bytes");
                entries += number(holding, "entries");
            }
        }
    }
    if (sums.empty()) return {};
    std::string rows = fmt::format("\n{:<20}  {:<6} {:<9} {:>9} {:>9}\n", "tenant", "class", "tier",
                                   "bytes", "blocks");
    for (const auto& [key, held] : sums) {
        const auto& [tenant, retention, tier] = key;
        rows += fmt::format("{:<20}  {:<6} {:<9} {:>9} {:>9}\n", tenant, retention, tier,
                            size(held.first), held.second);
    }
    return rows;
}

/// Whose list a worker follows, where it is not the newest.
std::string late_text(const json::object& status) {
    std::string rows;
    const std::uint64_t epoch = number(status, "epoch");
    for (const json::value& value : status.at("holders").as_array()) {
        const json::object& holder = value.as_object();
        const json::value& said = holder.at("status");
        if (!said.is_object() || text(holder, "kind") != "worker") continue;
        const std::uint64_t follows = number(said.as_object(), "epoch");
        if (follows != epoch)
            rows += fmt::format("{} follows epoch {}\n", name_of(holder), follows);
    }
    return rows;
}

/// Nodes and directories that workers don't reach, foreign ones as well.
std::string unreachable_text(const json::array& holders) {
    std::string rows;
    for (const json::value& value : holders) {
        const json::object& holder = value.as_object();
        const json::value& said = holder.at("status");
        if (!said.is_object()) continue;
        for (const json::value& each : said.as_object().at("stores").as_array()) {
            const json::object& store = each.as_object();
            if (!store.at("reachable").as_bool())
                rows += fmt::format("{} does not reach {}\n", name_of(holder), text(store, "url"));
        }
    }
    return rows;
}

std::string did_text(const json::object& result, std::string_view done, std::string_view failed) {
    std::string text = fmt::format("{} blocks {}", number(result, "done"), done);
    if (number(result, "bytes") > 0) text += fmt::format(", {}", size(number(result, "bytes")));
    if (!failed.empty()) text += fmt::format(", {} {}", number(result, "failed"), failed);
    return text;
}

}  // namespace

std::string kv_members_text(const json::object& members) {
    const json::array& nodes = members.at("members").as_array();
    std::string rows = fmt::format("epoch {}: {} node{}\n", number(members, "epoch"), nodes.size(),
                                   nodes.size() == 1 ? "" : "s");
    for (const json::value& value : nodes) {
        const json::object& node = value.as_object();
        rows += fmt::format("  {}  {}\n", text(node, "url"),
                            node.at("foreign").as_bool()
                                ? "foreign: it holds nobody to classes or limits"
                                : text(node, "http"));
    }
    return rows;
}

std::string kv_status_text(const json::object& status) {
    const json::array& holders = status.at("holders").as_array();
    return kv_members_text(status) + late_text(status) + unreachable_text(holders) + "\n" +
           tiers_text(holders) + holdings_text(holders);
}

std::string kv_added_text(const json::object& answer) {
    std::string rows = kv_members_text(answer);
    for (const json::value& each : answer.at("unreachable").as_array())
        rows += fmt::format("nobody answers at {}\n",
                            record::plain({each.as_string().data(), each.as_string().size()}));
    return rows;
}

std::string kv_results_text(const json::object& results, std::string_view done,
                            std::string_view failed) {
    std::string rows;
    for (const json::value& value : results.at("holders").as_array()) {
        const json::object& holder = value.as_object();
        if (const std::string why = text(holder, "error"); !why.empty()) {
            rows += fmt::format("{}: {}\n", name_of(holder), why);
            continue;
        }
        rows += fmt::format("{}: {}\n", name_of(holder), did_text(holder, done, failed));
    }
    return rows + fmt::format("all: {}\n", did_text(results, done, failed));
}

}  // namespace sluice::app
