#pragma once

// Rows on their way to the database, in bounded memory and with exact counts.
//
// Below its capacity the queue keeps every row. Above it, a row joins one of its own class (pool,
// role, bucket, kind, outcome) that waits already: the two weights add up, and which of the two
// contents stays is drawn so that in the end each of those that came was equally likely to
// (reservoir sampling). So a count by class is right whatever the load, and only details thin out.
//
// The first row of each class above the capacity is kept, so the queue may be longer than that by
// the number of classes. Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "record/request_row.h"

namespace sluice::record {

class RowQueue {
public:
    explicit RowQueue(std::size_t capacity) : capacity_(capacity) {}

    /// False if the row joined another one.
    bool push(RequestRow row);

    /// All rows, oldest first; the queue is empty after it.
    [[nodiscard]] std::vector<RequestRow> take();

    [[nodiscard]] std::size_t size() const { return rows_.size(); }
    [[nodiscard]] bool empty() const { return rows_.empty(); }

private:
    using Class = std::tuple<std::string, RequestRole, LengthBucket, RequestKind, Outcome>;

    [[nodiscard]] std::uint64_t draw_below(std::uint64_t bound);

    std::size_t capacity_;
    std::vector<RequestRow> rows_;
    std::map<Class, std::size_t> carriers_;  ///< Index in rows_ of the row that others join.
    std::uint64_t random_ = 0x9E3779B97F4A7C15ULL;
};

}  // namespace sluice::record
