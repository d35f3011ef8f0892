#include "record/row_queue.h"

#include <set>

#include "tests/record/support.h"

namespace sluice::record {
namespace {

RequestRow row_of(const std::string& pool, Outcome outcome, const std::string& rid) {
    RequestRow row;
    row.pool = pool;
    row.outcome = outcome;
    row.rid = rid;
    return row;
}

TEST(RowQueueTest, BelowItsCapacityEveryRowIsKeptInOrder) {
    RowQueue queue(10);
    for (int i = 0; i < 10; ++i)
        EXPECT_TRUE(queue.push(row_of("a", Outcome::kOk, std::to_string(i))));
    const auto rows = queue.take();
    ASSERT_EQ(rows.size(), 10U);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(rows[i].rid, std::to_string(i));
    EXPECT_TRUE(queue.empty());
}

TEST(RowQueueTest, AboveItCountsStayExactByClassAndMemoryBounded) {
    RowQueue queue(16);
    std::map<std::pair<std::string, Outcome>, std::uint64_t> sent;
    for (int i = 0; i < 10'000; ++i) {
        const std::string pool = i % 3 == 0 ? "a" : "b";
        const Outcome outcome = i % 7 == 0 ? Outcome::kError : Outcome::kOk;
        ++sent[{pool, outcome}];
        (void)queue.push(row_of(pool, outcome, std::to_string(i)));
    }
    EXPECT_LE(queue.size(), 16U + 4U);
    std::map<std::pair<std::string, Outcome>, std::uint64_t> counted;
    for (const RequestRow& row : queue.take()) counted[{row.pool, row.outcome}] += row.weight;
    EXPECT_EQ(counted, sent);
}

// Of 20 rows that join, each should survive in about one of 20 runs.
TEST(RowQueueTest, WhoStaysIsDrawnEvenly) {
    RowQueue queue(0);
    std::map<std::string, int> survived;
    for (int run = 0; run < 20'000; ++run) {
        for (int i = 0; i < 20; ++i) (void)queue.push(row_of("a", Outcome::kOk, std::to_string(i)));
        const auto rows = queue.take();
        ASSERT_EQ(rows.size(), 1U);
        ASSERT_EQ(rows[0].weight, 20U);
        ++survived[rows[0].rid];
    }
    ASSERT_EQ(survived.size(), 20U);
    for (const auto& [rid, times] : survived) EXPECT_NEAR(times, 1'000, 160) << rid;
}

}  // namespace
}  // namespace sluice::record
