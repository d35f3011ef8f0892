#include "sim/fault_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/config.h"
#include "base/nearest.h"
#include "trace/random.h"

namespace sluice::sim {
namespace {

using config::Table;
using Kind = Fault::Kind;

constexpr auto kKinds =
    std::to_array<std::string_view>({"crash", "stall", "slow", "other_model", "restart", "cancel"});
constexpr double kFactorMost = 1e6;

std::optional<Kind> read_kind(Table& row) {
    const auto name = row.text("kind");
    if (!name) {
        if (!row.has("kind")) row.reject("kind", "is missing");
        return std::nullopt;
    }
    const auto* const found = std::ranges::find(kKinds, *name);
    if (found == kKinds.end()) {
        row.reject("kind",
                   fmt::format("\"{}\" is no kind of fault{}", *name, did_you_mean(*name, kKinds)));
        return std::nullopt;
    }
    return static_cast<Kind>(found - kKinds.begin());
}

void read_worker(Table& row, Fault& fault, std::uint32_t workers, trace::Random& random) {
    const auto drawn = static_cast<std::uint32_t>(random.next() % workers);
    const auto worker = row.integer_or("worker", {0, std::int64_t{workers} - 1}, "any");
    if (worker) fault.worker = static_cast<std::uint32_t>(worker->number.value_or(drawn));
    if (!row.has("worker")) row.reject("worker", "is missing: a number from 0, or \"any\"");
}

Fault read_fault(Table row, std::uint32_t workers, trace::Random& random) {
    Fault fault;
    if (const auto at = row.duration("at")) {
        fault.at = *at;
    } else if (!row.has("at")) {
        row.reject("at", "is missing");
    }
    const auto kind = read_kind(row);
    if (kind) fault.kind = *kind;
    if (kind == Kind::kCancel) {
        fault.share = row.number("share", 0.0).value_or(1.0);
        if (fault.share > 1.0) row.reject("share", "must be between 0 and 1");
    } else {
        read_worker(row, fault, workers, random);
        if (const auto duration = row.duration("for")) {
            fault.duration = *duration;
        } else if (!row.has("for")) {
            row.reject("for", "is missing");
        }
    }
    if (kind == Kind::kSlow) {
        fault.factor = row.number("factor", 1.0).value_or(2.0);
        if (fault.factor > kFactorMost)
            row.reject("factor", fmt::format("must be at most {:g}", kFactorMost));
    }
    row.finish();
    return fault;
}

Result<std::vector<Fault>> from(Result<config::Document> document, std::uint32_t workers,
                                std::uint64_t seed) {
    if (!document) return std::unexpected(document.error());
    trace::Random random(seed);
    Table root = document->root();
    std::vector<Fault> faults;
    for (Table& row : root.tables("fault")) faults.push_back(read_fault(row, workers, random));
    root.finish();
    if (const auto errors = document->errors(); !errors.empty())
        return std::unexpected(errors.front());
    std::ranges::stable_sort(faults, {}, &Fault::at);
    return faults;
}

}  // namespace

Result<std::vector<Fault>> parse_faults(std::string_view text, std::string name,
                                        std::uint32_t workers, std::uint64_t seed) {
    return from(config::Document::parse(text, std::move(name)), workers, seed);
}

Result<std::vector<Fault>> read_faults(const std::string& path, std::uint32_t workers,
                                       std::uint64_t seed) {
    return from(config::Document::load(path), workers, seed);
}

}  // namespace sluice::sim
