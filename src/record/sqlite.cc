#include "record/sqlite.h"

#include <optional>
#include <utility>

namespace sluice::record {
namespace {

constexpr int kBusyMilliseconds = 2'000;

ErrorCode code_of(int code) {
    switch (code & 0xFF) {
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB: return ErrorCode::kCorrupt;
        case SQLITE_FULL: return ErrorCode::kExhausted;
        case SQLITE_BUSY:
        case SQLITE_LOCKED: return ErrorCode::kUnavailable;
        case SQLITE_CANTOPEN:
        case SQLITE_PERM:
        case SQLITE_READONLY: return ErrorCode::kInvalid;
        default: return ErrorCode::kIo;
    }
}

}  // namespace

Error sqlite_error(sqlite3* database) {
    const char* const file = sqlite3_db_filename(database, nullptr);
    return {code_of(sqlite3_extended_errcode(database)), sqlite3_errmsg(database),
            file != nullptr ? file : ""};
}

void Statement::bind(int index, std::string_view text) {
    sqlite3_bind_text64(statement_.get(), index, text.data(), text.size(), SQLITE_STATIC,
                        SQLITE_UTF8);
}

void Statement::bind(int index, std::int64_t number) {
    sqlite3_bind_int64(statement_.get(), index, number);
}

void Statement::bind(int index, double number) {
    sqlite3_bind_double(statement_.get(), index, number);
}

Result<bool> Statement::step() {
    const int code = sqlite3_step(statement_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return std::unexpected(sqlite_error(sqlite3_db_handle(statement_.get())));
}

Result<void> Statement::run() {
    const auto stepped = step();
    std::optional<Error> error;
    if (!stepped) error = stepped.error();
    reset();
    if (error) return std::unexpected(*error);
    return {};
}

void Statement::reset() { sqlite3_reset(statement_.get()); }

std::string_view Statement::text(int column) const {
    const auto* const data =
        reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
    if (data == nullptr) return {};
    return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::int64_t Statement::integer(int column) const {
    return sqlite3_column_int64(statement_.get(), column);
}

double Statement::number(int column) const {
    return sqlite3_column_double(statement_.get(), column);
}

Result<Sqlite> Sqlite::open(const std::string& path, Access access) {
    const int flags = (access == Access::kRead ? SQLITE_OPEN_READONLY
                                               : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) |
                      SQLITE_OPEN_NOMUTEX;
    sqlite3* handle = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
    Sqlite database(handle);
    if (code != SQLITE_OK) {
        const Error error = sqlite_error(handle);
        return std::unexpected(Error(error.code(), error.message(), path));
    }
    sqlite3_busy_timeout(handle, kBusyMilliseconds);
    sqlite3_extended_result_codes(handle, 1);
    if (const auto read = database.integer("PRAGMA schema_version"); !read)
        return std::unexpected(read.error());
    return database;
}

Result<Statement> Sqlite::prepare(std::string_view sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()), &statement,
                           nullptr) != SQLITE_OK) {
        return std::unexpected(sqlite_error(database_.get()));
    }
    return Statement(statement);
}

Result<void> Sqlite::execute(const std::string& sql) {
    if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
        return std::unexpected(sqlite_error(database_.get()));
    return {};
}

Result<std::int64_t> Sqlite::integer(std::string_view sql) {
    auto statement = prepare(sql);
    if (!statement) return std::unexpected(statement.error());
    const auto row = statement->step();
    if (!row) return std::unexpected(row.error());
    return *row ? statement->integer(0) : 0;
}

}  // namespace sluice::record
