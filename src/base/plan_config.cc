#include "base/plan_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/config.h"
#include "base/limits.h"
#include "base/nearest.h"

namespace sluice {
namespace {

using config::Range;
using config::Table;

constexpr std::int64_t kDefaultConcurrent = 8;
constexpr std::chrono::minutes kDefaultWindow{5};

/// What was read, or what holds without it.
template <class T, class Read>
Setting<T> setting(Table& table, std::string_view key, T otherwise, Read&& read) {
    auto value = std::forward<Read>(read)();
    if (!value) return {std::move(otherwise), "default"};
    return {T(std::move(*value)), table.place(key)};
}

Setting<std::string> text(Table& table, std::string_view key) {
    return setting<std::string>(table, key, "", [&] {
        std::optional<std::string> value = table.text(key);
        const bool shown = !value || std::ranges::none_of(*value, [](char c) {
            return static_cast<unsigned char>(c) < 0x20 || c == '\x7F';
        });
        if (shown && (!value || value->size() <= limits::kMetricLabelBytes)) return value;
        table.reject(key, "is too long or holds control characters");
        return std::optional<std::string>();
    });
}

Setting<std::optional<double>> number(Table& table, std::string_view key) {
    return setting<std::optional<double>>(table, key, std::nullopt,
                                          [&] { return table.number(key, 0.0); });
}

/// A pool that must be named: places of later complaints are those of its table.
Setting<std::string> pool(Table& table) {
    if (!table.has("pool")) table.reject("pool", "must name a pool in \"pool\"");
    return text(table, "pool");
}

SplitConfig read_split(Table& table) {
    SplitConfig split{.pool = pool(table),
                      .weight = number(table, "weight"),
                      .lease = {std::nullopt, table.place()}};
    if (const auto lease = table.duration("lease")) split.lease = {*lease, table.place("lease")};
    if (!*split.weight) split.weight.place = table.place();
    return split;
}

ShadowConfig read_shadow(Table& table) {
    ShadowConfig shadow{.pool = pool(table), .share = number(table, "share")};
    shadow.max_concurrent = setting<std::int64_t>(table, "max_concurrent", kDefaultConcurrent, [&] {
        return table.integer("max_concurrent", Range{1, limits::kShadowConcurrent});
    });
    if (!*shadow.share) shadow.share.place = table.place();
    return shadow;
}

GuardConfig read_guard(Table& table) {
    GuardConfig guard{.pool = pool(table),
                      .metric = text(table, "metric"),
                      .max = number(table, "max"),
                      .max_ratio = number(table, "max_ratio")};
    guard.min_samples = setting<std::int64_t>(table, "min_samples", 0, [&] {
        return table.integer("min_samples",
                             Range{1, static_cast<std::int64_t>(limits::kGuardSamples)});
    });
    guard.window = setting<std::chrono::milliseconds>(table, "window", kDefaultWindow,
                                                      [&] { return table.duration("window"); });
    for (std::string* place : {&guard.metric.place, &guard.min_samples.place, &guard.max.place}) {
        if (*place == "default") *place = table.place();
    }
    return guard;
}

template <class Row>
std::vector<Row> read_rows(Table& plan, std::string_view key, Row (*read)(Table&)) {
    std::vector<Row> rows;
    for (Table& table : plan.tables(key)) {
        if (rows.size() == limits::kPlanRows) {
            table.reject("pool", fmt::format("is one row more than {}", limits::kPlanRows));
            break;
        }
        rows.push_back(read(table));
        table.finish();
    }
    return rows;
}

}  // namespace

PlanConfig read_plan_config(std::optional<Table> table) {
    PlanConfig plan;
    if (!table) return plan;
    plan.stable = text(*table, "stable");
    plan.salt = text(*table, "salt");
    plan.splits = read_rows(*table, "split", read_split);
    plan.shadows = read_rows(*table, "shadow", read_shadow);
    plan.guards = read_rows(*table, "guard", read_guard);
    table->finish();
    return plan;
}

}  // namespace sluice
