#include "record/record_reader.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

namespace sluice::record {
namespace {

constexpr std::int64_t kPageRows = 1'000;

/// The conditions of a query, and their values in the same order.
struct Where {
    std::string sql;
    std::vector<std::string> texts;
};

Where where(const RecordQuery& query) {
    Where where{
        .sql = fmt::format("time_ms >= {} AND time_ms < {}", query.since_ms, query.until_ms),
        .texts = {}};
    const auto add = [&](std::string_view column, std::string_view text) {
        where.sql += fmt::format(" AND {} = ?", column);
        where.texts.emplace_back(text);
    };
    if (!query.pool.empty()) add("pool", query.pool);
    if (query.role) add("role", to_string(*query.role));
    if (!query.id.empty()) {
        where.sql += " AND (rid = ? OR request_id = ?)";
        where.texts.insert(where.texts.end(), 2, query.id);
    }
    return where;
}

void bind(Statement& statement, const std::vector<std::string>& texts) {
    int index = 0;
    for (const std::string& text : texts) statement.bind(++index, std::string_view(text));
}

}  // namespace

Result<RecordReader> RecordReader::open(const std::string& path) {
    std::error_code ignored;
    const std::string file =
        std::filesystem::is_directory(path, ignored) ? path + "/records.db" : path;
    if (!std::filesystem::exists(file, ignored))
        return std::unexpected(Error::not_found("there are no records", file));
    auto database = Sqlite::open(file, Sqlite::Access::kRead);
    if (!database) return std::unexpected(database.error());
    return RecordReader(std::move(*database));
}

// What is written while a query runs is not part of it.
Result<RecordReader::Range> RecordReader::range_of(const RecordQuery& query) {
    const Where all = where(query);
    auto statement = database_.prepare("SELECT min(seq), max(seq) FROM rows WHERE " + all.sql);
    if (!statement) return std::unexpected(statement.error());
    bind(*statement, all.texts);
    const auto found = statement->step();
    if (!found) return std::unexpected(found.error());
    Range range{.first = statement->integer(0), .last = statement->integer(1)};
    if (range.last == 0) range.last = -1;  // NULL: there is none.
    return range;
}

Result<RecordReader::Range> RecordReader::newest(const RecordQuery& query, Range range) {
    if (query.limit >= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return range;
    if (query.limit == 0) return Range{};
    const Where all = where(query);
    auto statement = database_.prepare(
        fmt::format("SELECT seq FROM rows WHERE {} AND seq BETWEEN {} AND {} ORDER BY seq DESC "
                    "LIMIT 1 OFFSET {}",
                    all.sql, range.first, range.last, query.limit - 1));
    if (!statement) return std::unexpected(statement.error());
    bind(*statement, all.texts);
    const auto found = statement->step();
    if (!found) return std::unexpected(found.error());
    if (*found) range.first = statement->integer(0);
    return range;
}

Result<RecordPages> RecordReader::pages(const RecordQuery& query, std::int64_t now_ms) {
    const auto whole = range_of({.since_ms = query.since_ms, .until_ms = query.until_ms});
    if (!whole) return std::unexpected(whole.error());
    auto bills_by_pool = bills(query, now_ms, *whole);
    if (!bills_by_pool) return std::unexpected(bills_by_pool.error());
    const auto range = newest(query, *whole);
    if (!range) return std::unexpected(range.error());
    RecordPages pages;
    pages.database_ = &database_;
    pages.query_ = query;
    pages.bills_ = std::move(*bills_by_pool);
    pages.next_ = range->first;
    pages.last_ = range->last;
    return pages;
}

Result<bool> RecordPages::next(const Visit& visit) {
    if (next_ > last_) return false;
    const Where all = where(query_);
    auto page = database_->prepare(
        fmt::format("SELECT seq, body FROM rows WHERE {} AND seq BETWEEN {} AND {} ORDER BY seq "
                    "LIMIT {}",
                    all.sql, next_, last_, kPageRows));
    if (!page) return std::unexpected(page.error());
    bind(*page, all.texts);
    std::int64_t rows = 0;
    auto found = page->step();
    for (; found && *found; found = page->step(), ++rows) {
        next_ = page->integer(0) + 1;
        const auto parsed = parse_row(page->text(1));
        if (!parsed) continue;  // Of a newer Sluice.
        const RequestRow& row = parsed->row;
        const auto bill = bills_.find(row.pool);
        const double cost = bill == bills_.end() ? 0.0 : bill->second.share(row.held(), row.weight);
        if (!visit(row, cost)) return false;
    }
    if (!found) return std::unexpected(found.error());
    return rows == kPageRows;
}

Result<void> RecordReader::for_each(const RecordQuery& query, std::int64_t now_ms,
                                    const RecordPages::Visit& visit) {
    auto all = pages(query, now_ms);
    if (!all) return std::unexpected(all.error());
    auto more = all->next(visit);
    while (more && *more) more = all->next(visit);
    if (!more) return std::unexpected(more.error());
    return {};
}

Result<std::map<std::string, PoolBill>> RecordReader::bills(const RecordQuery& query,
                                                            std::int64_t now_ms) {
    const auto range = range_of({.since_ms = query.since_ms, .until_ms = query.until_ms});
    if (!range) return std::unexpected(range.error());
    return bills(query, now_ms, *range);
}

Result<std::map<std::string, PoolBill>> RecordReader::bills(const RecordQuery& query,
                                                            std::int64_t now_ms, Range range) {
    std::map<std::string, std::vector<PriceStep>> steps;
    auto prices =
        database_.prepare("SELECT pool, since_ms, price_hour FROM prices ORDER BY pool, since_ms");
    if (!prices) return std::unexpected(prices.error());
    auto found = prices->step();
    for (; found && *found; found = prices->step()) {
        steps[std::string(prices->text(0))].push_back(
            {.since_ms = prices->integer(1), .price_hour = prices->number(2)});
    }
    if (!found) return std::unexpected(found.error());

    std::map<std::string, PoolBill> bills;
    for (const auto& [pool, of_pool] : steps)
        bills[pool].bill = bill(of_pool, query.since_ms, std::min(query.until_ms, now_ms));
    auto held = database_.prepare(
        fmt::format("SELECT pool, sum(held_us * weight) FROM rows WHERE time_ms >= {} AND "
                    "time_ms < {} AND seq <= {} GROUP BY pool",
                    query.since_ms, query.until_ms, range.last));
    if (!held) return std::unexpected(held.error());
    found = held->step();
    for (; found && *found; found = held->step())
        bills[std::string(held->text(0))].held = std::chrono::microseconds(held->integer(1));
    if (!found) return std::unexpected(found.error());
    return bills;
}

Result<std::optional<VersionManifest>> RecordReader::manifest(const std::string& fingerprint) {
    auto statement = database_.prepare("SELECT body FROM manifests WHERE fingerprint = ?");
    if (!statement) return std::unexpected(statement.error());
    statement->bind(1, std::string_view(fingerprint));
    const auto found = statement->step();
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    auto manifest = parse_version_manifest(statement->text(0));
    if (!manifest) return std::unexpected(manifest.error());
    return *manifest;
}

Result<std::map<std::string, VersionManifest>> RecordReader::manifests() {
    std::map<std::string, VersionManifest> manifests;
    auto statement = database_.prepare("SELECT fingerprint, body FROM manifests");
    if (!statement) return std::unexpected(statement.error());
    auto found = statement->step();
    for (; found && *found; found = statement->step()) {
        if (auto manifest = parse_version_manifest(statement->text(1)))
            manifests.emplace(statement->text(0), std::move(*manifest));
    }
    if (!found) return std::unexpected(found.error());
    return manifests;
}

}  // namespace sluice::record
