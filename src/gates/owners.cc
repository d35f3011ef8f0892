#include "gates/owners.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/config.h"
#include "base/limits.h"
#include "base/nearest.h"
#include "base/private_file.h"

namespace sluice::gates {
namespace {

using config::Document;
using config::Table;
using Names = std::vector<std::string_view>;

/// Text for one line of a report; absent is empty.
std::string line(Table& table, std::string_view key) {
    std::string text = table.text(key).value_or("");
    if (text.size() > limits::kOwnerTextBytes) {
        table.reject(key, fmt::format("has more than {} bytes", limits::kOwnerTextBytes));
        return {};
    }
    const bool control =
        std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
    if (control) table.reject(key, "must be one line of text");
    return control ? std::string() : text;
}

OwnedFailure read_failure(Table& table, const Names& pools) {
    OwnedFailure row{.pool = line(table, "pool"),
                     .owner = line(table, "owner"),
                     .caught_by = line(table, "caught_by"),
                     .rollback = line(table, "rollback"),
                     .accepted = line(table, "accepted"),
                     .place = table.place()};
    const std::string name = line(table, "name");
    const Names names = failure_names();
    if (const auto failure = parse_failure(name)) {
        row.failure = *failure;
    } else {
        table.reject("name", fmt::format("is no failure{}", did_you_mean(name, names)));
    }
    if (!row.pool.empty() && std::ranges::find(pools, row.pool) == pools.end())
        table.reject("pool", fmt::format("names no pool{}", did_you_mean(row.pool, pools)));
    if (!row.accepted.empty() && !row.caught_by.empty())
        table.reject("accepted", "and caught_by are both there; keep one");
    table.finish();
    return row;
}

/// The interfaces that a list names; what is unknown is noted.
std::vector<const Interface*> read_interfaces(Table& table, std::string_view key, LayerKind kind) {
    std::vector<const Interface*> found;
    const Names names = interface_names(kind);
    for (const std::string& name : table.texts(key).value_or(std::vector<std::string>())) {
        const Interface* const interface = find_interface(kind, name);
        if (interface == nullptr) {
            table.reject(key, fmt::format("has a name that no {} layer does{}", to_string(kind),
                                          did_you_mean(name, names)));
        } else if (std::ranges::find(found, interface) == found.end()) {
            found.push_back(interface);
        }
    }
    return found;
}

OwnLayer read_layer(Table& table) {
    OwnLayer layer{
        .name = line(table, "name"), .owner = line(table, "owner"), .place = table.place()};
    if (layer.name.empty()) table.reject("name", "must say what the layer is called");
    const auto kind = parse_layer_kind(line(table, "kind"));
    if (!kind) table.reject("kind", "must be \"traffic\" or \"cache\"");
    layer.kind = kind.value_or(LayerKind::kTraffic);
    if (kind) {
        layer.does = read_interfaces(table, "does", *kind);
        for (const Interface* const interface : read_interfaces(table, "settled", *kind)) {
            layer.settled.insert(interface->name);
            if (std::ranges::find(layer.does, interface) == layer.does.end())
                table.reject("settled", fmt::format("has {}, which does has not", interface->name));
        }
        if (layer.does.empty()) table.reject("does", "must name what the layer does");
        table.finish();
    }
    return layer;
}

/// Whether there is room for one more row; notes it if not.
bool has_room(Table& table, std::size_t rows) {
    if (rows < limits::kOwnerRows) return true;
    table.reject("name", fmt::format("is one row more than {}", limits::kOwnerRows));
    return false;
}

Owners read(Table root, const Names& pools) {
    Owners owners{.owner = line(root, "owner")};
    std::set<std::pair<Failure, std::string>> seen;
    for (Table& table : root.tables("failure")) {
        if (!has_room(table, owners.failures.size())) break;
        OwnedFailure row = read_failure(table, pools);
        if (!seen.emplace(row.failure, row.pool).second)
            table.reject("name", "has an earlier row for the same pool");
        owners.failures.push_back(std::move(row));
    }
    for (Table& table : root.tables("layer")) {
        if (!has_room(table, owners.layers.size())) break;
        owners.layers.push_back(read_layer(table));
    }
    root.finish();
    return owners;
}

}  // namespace

const OwnedFailure* Owners::find(Failure failure, std::string_view subject) const {
    const OwnedFailure* general = nullptr;
    for (const OwnedFailure& row : failures) {
        if (row.failure != failure) continue;
        if (row.pool == subject) return &row;
        if (row.pool.empty()) general = &row;
    }
    return general;
}

std::expected<Owners, std::vector<Error>> parse_owners(std::string_view text, std::string name,
                                                       const Names& pools) {
    const Result<Document> document = Document::parse(text, std::move(name));
    if (!document) return std::unexpected(std::vector{document.error()});
    Owners owners = read(document->root(), pools);
    std::vector<Error> errors = document->errors();
    if (!errors.empty()) return std::unexpected(std::move(errors));
    return owners;
}

std::expected<Owners, std::vector<Error>> load_owners(const std::string& path, const Names& pools) {
    const auto text = read_small_file(path, limits::kConfigFileBytes);
    if (!text) return std::unexpected(std::vector{text.error()});
    return parse_owners(*text, path, pools);
}

}  // namespace sluice::gates
