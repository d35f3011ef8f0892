#pragma once

// The file that rows end up in: its schema, its migrations, and everything that writes to it.
//
// Rows are ordered by `seq`, which only grows, so a clock that steps back reorders nothing. Columns
// are what queries choose by; `body` is the row as JSON. The view `requests` shows both to people
// with a SQL shell. All writing happens inside begin() ... commit(), one transaction per batch.
//
// One writer; readers use connections of their own (record_reader.h), which WAL lets them.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "record/request_row.h"
#include "record/sqlite.h"

namespace sluice::record {

/// How far a journal's entries are in the database.
struct JournalMark {
    std::uint64_t id = 0;
    std::uint64_t position = 0;
};

class RecordDatabase {
public:
    /// Opens or makes the file and brings its schema up to date. Errors as in sqlite.h, and
    /// `kUnsupported` if a newer Sluice wrote it.
    [[nodiscard]] static Result<RecordDatabase> open(const std::string& path);

    [[nodiscard]] Result<void> begin();
    [[nodiscard]] Result<void> commit();
    void rollback();

    /// `body` is to_json(row).
    [[nodiscard]] Result<void> insert(const RequestRow& row, std::string_view body);
    /// Does nothing if the fingerprint is known already.
    [[nodiscard]] Result<void> insert_manifest(std::string_view fingerprint, std::string_view body);
    /// What `pool` costs an hour from `since_ms` on. Does nothing if that is what it cost before.
    [[nodiscard]] Result<void> insert_price(std::string_view pool, std::int64_t since_ms,
                                            double price_hour);

    [[nodiscard]] Result<JournalMark> journal_mark();
    [[nodiscard]] Result<void> set_journal_mark(const JournalMark& mark);

    /// Deletes up to a few thousand rows that arrived before `oldest_ms`, and if the rest takes more
    /// than `bytes`, of the oldest. True if there is more to delete. A transaction of its own.
    [[nodiscard]] Result<bool> retain(std::int64_t oldest_ms, std::uint64_t bytes);
    /// Bytes of the file that are in use.
    [[nodiscard]] Result<std::uint64_t> used_bytes();

private:
    struct Statements {
        Statement insert_row;
        Statement insert_manifest;
        Statement last_price;
        Statement insert_price;
        Statement get_mark;
        Statement set_mark;
        Statement delete_old;
        Statement delete_first;
    };
    RecordDatabase(Sqlite database, Statements statements)
        : database_(std::move(database)), statements_(std::move(statements)) {}
    [[nodiscard]] static Result<Statements> prepare(Sqlite& database);
    [[nodiscard]] Result<bool> delete_rows(std::int64_t oldest_ms, std::uint64_t bytes);

    Sqlite database_;
    Statements statements_;  ///< End before their connection.
};

}  // namespace sluice::record
