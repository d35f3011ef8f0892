#include "record/record_database.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace sluice::record {
namespace {

/// Rows that one call of retain() may delete: some milliseconds of work.
constexpr int kDeleteRows = 5'000;

// Step i brings a file from version i to i + 1. Never edited, only added to.
constexpr auto kMigrations = std::to_array<const char*>({
    R"sql(
CREATE TABLE rows(
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    time_ms INTEGER NOT NULL,
    rid TEXT NOT NULL,
    request_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    pool TEXT NOT NULL,
    role TEXT NOT NULL,
    bucket TEXT NOT NULL,
    kind TEXT NOT NULL,
    outcome TEXT NOT NULL,
    weight INTEGER NOT NULL,
    held_us INTEGER NOT NULL,
    body TEXT NOT NULL) STRICT;
CREATE INDEX rows_by_time ON rows(time_ms);
CREATE INDEX rows_by_rid ON rows(rid);
CREATE INDEX rows_by_request_id ON rows(request_id);
CREATE TABLE manifests(fingerprint TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE prices(
    pool TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    price_hour REAL NOT NULL,
    PRIMARY KEY(pool, since_ms)) STRICT;
CREATE TABLE journal_mark(
    one INTEGER PRIMARY KEY CHECK(one = 1),
    id TEXT NOT NULL,
    position TEXT NOT NULL) STRICT;
)sql",
    R"sql(
CREATE VIEW requests AS SELECT
    seq, datetime(time_ms / 1000.0, 'unixepoch') AS time, rid, request_id, tenant, pool, role, bucket, kind,
    outcome, weight, held_us / 1000.0 AS held_ms,
    body ->> '$.prompt_tokens' AS prompt_tokens, body ->> '$.cached_tokens' AS cached_tokens,
    body ->> '$.completion_tokens' AS completion_tokens, body ->> '$.ttft_ms' AS ttft_ms,
    body ->> '$.tbt_ms.p50' AS tbt_p50_ms, body ->> '$.tbt_ms.p99' AS tbt_p99_ms,
    body ->> '$.duration_ms' AS duration_ms, body ->> '$.resumes' AS resumes,
    body ->> '$.retries' AS retries, body ->> '$.error' AS error,
    body ->> '$.fingerprint' AS fingerprint
    FROM rows;
)sql",
});

Result<void> migrate(Sqlite& database) {
    const auto version = database.integer("PRAGMA user_version");
    if (!version) return std::unexpected(version.error());
    constexpr auto kNewest = static_cast<std::int64_t>(kMigrations.size());
    if (*version < 0 || *version > kNewest) {
        return std::unexpected(Error::unsupported(
            fmt::format("these records have schema {}, and this Sluice knows up to {}; use a newer "
                        "one, or another folder",
                        *version, kNewest)));
    }
    for (std::int64_t step = *version; step < kNewest; ++step) {
        // All or nothing: a file is never between two versions.
        const auto done =
            database.execute(fmt::format("BEGIN IMMEDIATE; {} PRAGMA user_version = {}; COMMIT;",
                                         kMigrations[static_cast<std::size_t>(step)], step + 1));
        if (!done) return done;
    }
    return {};
}

std::uint64_t parse_number(std::string_view text) {
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

}  // namespace

Result<RecordDatabase> RecordDatabase::open(const std::string& path) {
    auto database = Sqlite::open(path, Sqlite::Access::kReadWrite);
    if (!database) return std::unexpected(database.error());
    // auto_vacuum counts only before the first table. NORMAL: in WAL mode a killed process loses
    // nothing, a power cut at most the last transactions.
    const auto set = database->execute(
        "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
        "PRAGMA journal_size_limit = 16777216;");
    if (!set) return std::unexpected(set.error());
    if (const auto migrated = migrate(*database); !migrated)
        return std::unexpected(migrated.error().within(path));
    auto statements = prepare(*database);
    if (!statements) return std::unexpected(statements.error());
    return RecordDatabase(std::move(*database), std::move(*statements));
}

Result<RecordDatabase::Statements> RecordDatabase::prepare(Sqlite& database) {
    std::optional<Error> error;
    const auto make = [&](std::string_view sql) {
        auto statement = database.prepare(sql);
        if (statement) return std::move(*statement);
        if (!error) error = statement.error();
        return Statement();
    };
    Statements statements{
        .insert_row = make("INSERT INTO rows(time_ms, rid, request_id, tenant, pool, role, bucket, "
                           "kind, outcome, weight, held_us, body) VALUES(?,?,?,?,?,?,?,?,?,?,?,?)"),
        .insert_manifest = make("INSERT OR IGNORE INTO manifests VALUES(?, ?)"),
        .last_price = make("SELECT price_hour FROM prices WHERE pool = ? AND since_ms <= ? "
                           "ORDER BY since_ms DESC LIMIT 1"),
        .insert_price = make("INSERT OR REPLACE INTO prices VALUES(?, ?, ?)"),
        .get_mark = make("SELECT id, position FROM journal_mark"),
        .set_mark = make("INSERT OR REPLACE INTO journal_mark VALUES(1, ?, ?)"),
        .delete_old = make("DELETE FROM rows WHERE seq IN (SELECT seq FROM rows WHERE time_ms < ? "
                           "ORDER BY time_ms LIMIT ?)"),
        .delete_first =
            make("DELETE FROM rows WHERE seq IN (SELECT seq FROM rows ORDER BY seq LIMIT ?)"),
    };
    if (error) return std::unexpected(*error);
    return statements;
}

Result<void> RecordDatabase::begin() { return database_.execute("BEGIN IMMEDIATE"); }
Result<void> RecordDatabase::commit() { return database_.execute("COMMIT"); }
// It fails if SQLite has rolled back by itself, which is as well.
void RecordDatabase::rollback() { (void)database_.execute("ROLLBACK"); }

Result<void> RecordDatabase::insert(const RequestRow& row, std::string_view body) {
    Statement& insert = statements_.insert_row;
    insert.bind(1, row.time_ms);
    insert.bind(2, row.rid);
    insert.bind(3, row.request_id);
    insert.bind(4, row.tenant);
    insert.bind(5, row.pool);
    insert.bind(6, to_string(row.role));
    insert.bind(7, to_string(row.bucket()));
    insert.bind(8, to_string(row.kind));
    insert.bind(9, to_string(row.outcome));
    insert.bind(10, static_cast<std::int64_t>(row.weight));
    insert.bind(11, static_cast<std::int64_t>(row.held().count()));
    insert.bind(12, body);
    return insert.run();
}

Result<void> RecordDatabase::insert_manifest(std::string_view fingerprint, std::string_view body) {
    statements_.insert_manifest.bind(1, fingerprint);
    statements_.insert_manifest.bind(2, body);
    return statements_.insert_manifest.run();
}

Result<void> RecordDatabase::insert_price(std::string_view pool, std::int64_t since_ms,
                                          double price_hour) {
    Statement& last = statements_.last_price;
    last.bind(1, pool);
    last.bind(2, since_ms);
    const auto found = last.step();
    const bool same = found && *found && last.number(0) == price_hour;
    last.reset();
    if (!found) return std::unexpected(found.error());
    if (same) return {};
    statements_.insert_price.bind(1, pool);
    statements_.insert_price.bind(2, since_ms);
    statements_.insert_price.bind(3, price_hour);
    return statements_.insert_price.run();
}

Result<JournalMark> RecordDatabase::journal_mark() {
    Statement& get = statements_.get_mark;
    const auto found = get.step();
    JournalMark mark;
    // As texts: SQLite's integers have a sign.
    if (found && *found)
        mark = {.id = parse_number(get.text(0)), .position = parse_number(get.text(1))};
    get.reset();
    if (!found) return std::unexpected(found.error());
    return mark;
}

Result<void> RecordDatabase::set_journal_mark(const JournalMark& mark) {
    const std::string id = fmt::format("{}", mark.id);
    const std::string position = fmt::format("{}", mark.position);
    statements_.set_mark.bind(1, id);
    statements_.set_mark.bind(2, position);
    return statements_.set_mark.run();
}

Result<std::uint64_t> RecordDatabase::used_bytes() {
    std::int64_t numbers[3];
    int at = 0;
    for (const auto* const name :
         {"PRAGMA page_count", "PRAGMA freelist_count", "PRAGMA page_size"}) {
        const auto number = database_.integer(name);
        if (!number) return std::unexpected(number.error());
        numbers[at++] = *number;
    }
    return static_cast<std::uint64_t>((numbers[0] - numbers[1]) * numbers[2]);
}

Result<bool> RecordDatabase::delete_rows(std::int64_t oldest_ms, std::uint64_t bytes) {
    statements_.delete_old.bind(1, oldest_ms);
    statements_.delete_old.bind(2, std::int64_t{kDeleteRows});
    if (const auto deleted = statements_.delete_old.run(); !deleted)
        return std::unexpected(deleted.error());
    const auto used = used_bytes();
    if (!used) return std::unexpected(used.error());
    if (*used > bytes) {
        statements_.delete_first.bind(1, std::int64_t{kDeleteRows});
        if (const auto deleted = statements_.delete_first.run(); !deleted)
            return std::unexpected(deleted.error());
    }
    const auto rows = database_.integer("SELECT EXISTS(SELECT 1 FROM rows)");
    if (!rows) return std::unexpected(rows.error());
    const auto left = used_bytes();
    if (!left) return std::unexpected(left.error());
    if (*left > bytes) return *rows != 0;
    const auto old = database_.integer(
        fmt::format("SELECT EXISTS(SELECT 1 FROM rows WHERE time_ms < {})", oldest_ms));
    if (!old) return std::unexpected(old.error());
    return *old != 0;
}

Result<bool> RecordDatabase::retain(std::int64_t oldest_ms, std::uint64_t bytes) {
    if (const auto begun = begin(); !begun) return std::unexpected(begun.error());
    const auto more = delete_rows(oldest_ms, bytes);
    const auto done = more ? commit() : Result<void>(std::unexpected(more.error()));
    if (!done) {
        rollback();
        return std::unexpected(done.error());
    }
    // Gives the pages back to the file system.
    if (const auto given = database_.execute("PRAGMA incremental_vacuum"); !given)
        return std::unexpected(given.error());
    return more;
}

}  // namespace sluice::record
