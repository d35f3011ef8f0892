#include "base/kv_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/config.h"
#include "base/config_checks.h"
#include "base/limits.h"
#include "base/service_settings.h"
#include "base/setting_reader.h"

namespace sluice {
namespace {

using config::Table;

constexpr auto kSchemes =
    std::to_array<std::string_view>({"redis://", "rediss://", "redis+cluster://"});

void check_node_url(Table& table, const std::string& url) {
    const auto* const scheme = std::ranges::find_if(
        kSchemes, [&](std::string_view each) { return url.starts_with(each); });
    if (url.find('@') != std::string::npos)
        return table.reject("url",
                            "holds a password; name the variable that holds it in "
                            "password_env");
    const std::string_view rest = scheme == kSchemes.end()
                                      ? std::string_view()
                                      : std::string_view(url).substr(scheme->size());
    const bool good = rest.find(':') != std::string_view::npos && !rest.ends_with('/') &&
                      rest.find_first_of(" \t?#") == std::string_view::npos;
    if (!good) table.reject("url", "is not a node; write it like \"redis://10.0.0.7:7301\"");
}

std::vector<KvNodeConfig> read_nodes(Table& kv) {
    std::vector<KvNodeConfig> nodes;
    std::set<std::string> urls;
    for (Table& table : kv.tables("node")) {
        if (nodes.size() == limits::kKvStores) {
            table.reject("url", fmt::format("is one node more than {}", limits::kKvStores));
            break;
        }
        KvNodeConfig node;
        settings::visit_kv_node(node, SettingReader(table));
        check_node_url(table, *node.url);
        if (*node.http) config::check_url(table, "http", **node.http);
        if (!urls.insert(*node.url).second) table.reject("url", "is an earlier node's too");
        table.finish();
        nodes.push_back(std::move(node));
    }
    return nodes;
}

template <std::size_t N>
void check_word(Table& table, std::string_view key, const std::string& value,
                const std::array<std::string_view, N>& words) {
    if (std::ranges::find(words, value) != words.end()) return;
    table.reject(key, fmt::format("must be \"{}\"", fmt::join(words, "\" or \"")));
}

}  // namespace

KvConfig read_kv_config(std::optional<Table> table) {
    KvConfig kv;
    settings::visit_kv(kv, table ? SettingReader(*table) : SettingReader());
    if (!table) return kv;
    check_word(*table, "reuse", *kv.reuse,
               std::to_array<std::string_view>({"exact", "compatible"}));
    check_word(*table, "force", *kv.force,
               std::to_array<std::string_view>({"auto", "load", "recompute"}));
    if (*kv.directory && !(*kv.directory)->starts_with('/'))
        table->reject("directory", "must be a path from the root: \"/mnt/kv\"");
    if (kv.agent->count() == 0) table->reject("agent", "must be above 0");
    if (kv.chat->count() == 0) table->reject("chat", "must be above 0");
    kv.nodes = read_nodes(*table);
    table->finish();
    return kv;
}

}  // namespace sluice
