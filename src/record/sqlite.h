#pragma once

// SQLite's C interface as values: a connection and statements that close themselves, and errors that
// say what to do next. For the sources of this folder only.
//
// Not thread-safe: a connection and its statements belong to one thread at a time.

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::record {

class Statement {
public:
    Statement() = default;  ///< Not to be used before a real one is moved in.

    /// Values are bound from 1 on. Texts must live until the next reset().
    void bind(int index, std::string_view text);
    void bind(int index, std::int64_t number);
    void bind(int index, double number);

    /// True if there is a row to read, false at the end.
    [[nodiscard]] Result<bool> step();
    /// Runs a statement that gives no rows, and makes it ready for the next values.
    [[nodiscard]] Result<void> run();
    void reset();

    /// Columns count from 0; valid until the next step.
    [[nodiscard]] std::string_view text(int column) const;
    [[nodiscard]] std::int64_t integer(int column) const;
    [[nodiscard]] double number(int column) const;

private:
    friend class Sqlite;
    struct Finalize {
        void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
    };
    explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Sqlite {
public:
    enum class Access : std::uint8_t { kReadWrite, kRead };

    /// Makes the file if it may write. The header is read, so that a file that is no database is
    /// told here.
    [[nodiscard]] static Result<Sqlite> open(const std::string& path, Access access);

    [[nodiscard]] Result<Statement> prepare(std::string_view sql);
    /// One or more statements without values.
    [[nodiscard]] Result<void> execute(const std::string& sql);
    /// The first column of the first row; 0 if there is none.
    [[nodiscard]] Result<std::int64_t> integer(std::string_view sql);

private:
    struct Close {
        void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
    };
    explicit Sqlite(sqlite3* database) : database_(database) {}
    std::unique_ptr<sqlite3, Close> database_;
};

/// The last error of a connection. Codes: `kCorrupt` the file is damaged or no database,
/// `kExhausted` the disk is full, `kUnavailable` somebody else holds it, `kInvalid` it may not be
/// opened or written, `kIo` all else.
[[nodiscard]] Error sqlite_error(sqlite3* database);

}  // namespace sluice::record
