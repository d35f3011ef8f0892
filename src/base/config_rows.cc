#include "base/config_rows.h"

#include <fmt/core.h>

#include <utility>

#include "base/service_settings.h"

namespace sluice {
namespace {

using config::Range;

std::string literal(bool value) { return value ? "true" : "false"; }
std::string literal(std::int64_t value) { return fmt::format("{}", value); }
std::string literal(double value) {
    // TOML tells 1.0 from 1; both read back, but a price is a price.
    std::string text = fmt::format("{}", value);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}
std::string literal(std::string_view value) {
    std::string text = "\"";
    for (const char c : value) {
        if (c == '"' || c == '\\') text += '\\';
        text += c;
    }
    return text + '"';
}
std::string literal(const std::vector<std::string>& value) {
    std::string text;
    for (const std::string& each : value) {
        if (!text.empty()) text += ", ";
        text += literal(std::string_view(each));
    }
    return '[' + text + ']';
}
std::string literal(const HostPort& value) { return literal(std::string_view(to_string(value))); }
std::string literal(std::chrono::milliseconds value) {
    return literal(std::string_view(format_duration(value)));
}
std::string literal(const std::optional<std::int64_t>& value) {
    return value ? literal(*value) : "\"auto\"";
}
std::string literal(const std::optional<double>& value) { return value ? literal(*value) : ""; }
std::string literal(const std::optional<std::chrono::milliseconds>& value) {
    return value ? literal(*value) : "";
}

std::string literal(const std::optional<std::string>& value) {
    return literal(std::string_view(value.value_or("")));
}
std::string literal(std::uint64_t value) { return literal(std::string_view(format_bytes(value))); }

class Printer {
public:
    Printer(std::string table, std::vector<ConfigRow>& rows)
        : table_(std::move(table)), rows_(&rows) {}

    template <class T, class Default>
    void operator()(std::string_view key, const Setting<T>& setting, const Default&,
                    std::string_view meaning, Range = {}) {
        std::string value = print(*setting);
        if (value.empty()) return;  // Not set, and nothing holds instead.
        rows_->push_back({table_, std::string(key), std::move(value), setting.place, meaning});
    }

private:
    static std::string print(const std::string& value) { return literal(std::string_view(value)); }
    template <class T>
    static std::string print(const T& value) {
        return literal(value);
    }

    std::string table_;
    std::vector<ConfigRow>* rows_;
};

}  // namespace

std::vector<ConfigRow> rows(const ServiceConfig& config) {
    std::vector<ConfigRow> rows;
    settings::visit_gateway(config.gateway, Printer("gateway", rows));
    for (std::size_t i = 0; i < config.pools.size(); ++i) {
        settings::visit_pool(config.pools[i], Printer(fmt::format("pool[{}]", i), rows));
    }
    settings::visit_plan(config.plan, Printer("plan", rows));
    for (std::size_t i = 0; i < config.plan.splits.size(); ++i)
        settings::visit_split(config.plan.splits[i],
                              Printer(fmt::format("plan.split[{}]", i), rows));
    for (std::size_t i = 0; i < config.plan.shadows.size(); ++i)
        settings::visit_shadow(config.plan.shadows[i],
                               Printer(fmt::format("plan.shadow[{}]", i), rows));
    for (std::size_t i = 0; i < config.plan.guards.size(); ++i)
        settings::visit_guard(config.plan.guards[i],
                              Printer(fmt::format("plan.guard[{}]", i), rows));
    for (std::size_t i = 0; i < config.tenants.size(); ++i) {
        settings::visit_tenant(config.tenants[i], Printer(fmt::format("tenant[{}]", i), rows));
    }
    settings::visit_kv(config.kv, Printer("kv", rows));
    for (std::size_t i = 0; i < config.kv.nodes.size(); ++i)
        settings::visit_kv_node(config.kv.nodes[i], Printer(fmt::format("kv.node[{}]", i), rows));
    settings::visit_record(config.record, Printer("record", rows));
    settings::visit_discovery(config.discovery, Printer("discovery", rows));
    return rows;
}

std::string render(const ServiceConfig& config) {
    std::string text;
    std::string table;
    for (const ConfigRow& row : rows(config)) {
        if (row.table != table) {
            const std::size_t index = row.table.find('[');  // Of a list of tables.
            text += fmt::format("{}{}\n", table.empty() ? "" : "\n",
                                index == std::string::npos
                                    ? fmt::format("[{}]", row.table)
                                    : fmt::format("[[{}]]", row.table.substr(0, index)));
            table = row.table;
        }
        const std::string line = fmt::format("{} = {}", row.key, row.value);
        text += fmt::format("{:<32}  # {}: {}\n", line, row.place, row.meaning);
    }
    return text;
}

}  // namespace sluice
