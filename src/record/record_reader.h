#pragma once

// Reads records back: rows of a window of time, what they cost, what a fingerprint stands for.
//
// Every reader has a connection of its own and reads in pages, so it neither waits for the writer
// nor makes it wait. Not thread-safe; one per query.

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "base/error.h"
#include "record/cost.h"
#include "record/request_row.h"
#include "record/sqlite.h"
#include "record/version_manifest.h"

namespace sluice::record {

/// Empty texts and nullopt choose everything.
struct RecordQuery {
    std::int64_t since_ms = 0;
    std::int64_t until_ms = std::numeric_limits<std::int64_t>::max();  ///< Not included.
    std::string pool;
    std::optional<RequestRole> role;
    std::string id;  ///< A rid or a request_id.
    /// Of the rows chosen, the newest so many.
    std::uint64_t limit = std::numeric_limits<std::int64_t>::max();
};

class RecordReader;

/// The rows of one query, page by page. What is written while it is read is not part of it.
class RecordPages {
public:
    /// Each row with its share of its pool's bill for the whole window, in the order they were
    /// written. Returns false to end the reading.
    using Visit = std::function<bool(const RequestRow& row, double cost)>;

    /// Visits the next page; false if it was the last.
    [[nodiscard]] Result<bool> next(const Visit& visit);

private:
    friend class RecordReader;
    Sqlite* database_ = nullptr;
    RecordQuery query_;
    std::map<std::string, PoolBill> bills_;
    std::int64_t next_ = 0;
    std::int64_t last_ = -1;
};

class RecordReader {
public:
    /// `path` of the database, or of the folder that it is in.
    [[nodiscard]] static Result<RecordReader> open(const std::string& path);

    /// `now_ms` is where a bill ends at the latest. The pages don't outlive the reader, which stays
    /// where it is.
    [[nodiscard]] Result<RecordPages> pages(const RecordQuery& query, std::int64_t now_ms);
    /// All pages at once.
    [[nodiscard]] Result<void> for_each(const RecordQuery& query, std::int64_t now_ms,
                                        const RecordPages::Visit& visit);

    /// By pool, of all rows in the window whatever else the query chooses.
    [[nodiscard]] Result<std::map<std::string, PoolBill>> bills(const RecordQuery& query,
                                                                std::int64_t now_ms);

    [[nodiscard]] Result<std::optional<VersionManifest>> manifest(const std::string& fingerprint);
    [[nodiscard]] Result<std::map<std::string, VersionManifest>> manifests();

private:
    struct Range {
        std::int64_t first = 0;
        std::int64_t last = -1;
    };
    explicit RecordReader(Sqlite database) : database_(std::move(database)) {}
    [[nodiscard]] Result<Range> range_of(const RecordQuery& query);
    [[nodiscard]] Result<Range> newest(const RecordQuery& query, Range range);
    [[nodiscard]] Result<std::map<std::string, PoolBill>> bills(const RecordQuery& query,
                                                                std::int64_t now_ms, Range range);

    Sqlite database_;
};

}  // namespace sluice::record
