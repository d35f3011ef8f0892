#include "record/record_reader.h"

#include <numeric>
#include <random>

#include "record/record_store.h"
#include "tests/record/support.h"

namespace sluice::record {
namespace {

constexpr std::int64_t kStart = 1'800'000'000'000;
constexpr std::int64_t kHour = 3'600'000;

class RecordReaderTest : public testing::Test {
protected:
    void open() {
        store_ = std::move(*RecordStore::open({.folder = folder_.path(),
                                               .batch_delay = std::chrono::milliseconds(1),
                                               .wall_clock_ms = [this] { return now_; }}));
    }
    void flush() { ASSERT_TRUE(store_->flush(std::chrono::minutes(2))); }
    void add(const std::string& rid, const std::string& pool, std::int64_t time_ms,
             std::chrono::microseconds held, Outcome outcome = Outcome::kOk) {
        RequestRow row;
        row.rid = rid;
        row.request_id = rid.starts_with("shadow") ? "a" : rid;
        row.pool = pool;
        row.time_ms = time_ms;
        row.outcome = outcome;
        if (held.count() > 0) row.legs = {{.pool = pool, .held = held}};
        if (rid.starts_with("shadow")) row.role = RequestRole::kShadow;
        store_->add(row);
    }
    [[nodiscard]] std::vector<std::string> rids(const RecordQuery& query) const {
        std::vector<std::string> rids;
        for (const ReadRow& each : read_all(folder_.path(), query)) rids.push_back(each.row.rid);
        return rids;
    }

    TemporaryFolder folder_;
    std::int64_t now_ = kStart;
    std::unique_ptr<RecordStore> store_;
};

using Rids = std::vector<std::string>;

TEST_F(RecordReaderTest, ChoosesByTimePoolRoleAndRid) {
    open();
    add("a", "stable", kStart, std::chrono::milliseconds(1));
    flush();
    add("b", "stable", kStart + 10, std::chrono::milliseconds(1));
    flush();
    add("shadow", "candidate", kStart + 20, std::chrono::milliseconds(1));
    flush();
    EXPECT_EQ(rids({}), (Rids{"a", "b", "shadow"}));
    EXPECT_EQ(rids({.since_ms = kStart + 10}), (Rids{"b", "shadow"}));
    EXPECT_EQ(rids({.until_ms = kStart + 10}), (Rids{"a"}));
    EXPECT_EQ(rids({.pool = "candidate"}), (Rids{"shadow"}));
    EXPECT_EQ(rids({.role = RequestRole::kAnswer}), (Rids{"a", "b"}));
    EXPECT_EQ(rids({.id = "b"}), (Rids{"b"}));
    EXPECT_EQ(rids({.id = "a"}), (Rids{"a", "shadow"}));
    EXPECT_EQ(rids({.limit = 2}), (Rids{"b", "shadow"}));
    EXPECT_EQ(rids({.limit = 0}), Rids{});
    EXPECT_EQ(rids({.pool = "' OR 1=1 --"}), Rids{});
}

TEST_F(RecordReaderTest, ManyPagesComeInOrderAndOnce) {
    open();
    for (int i = 0; i < 3'500; ++i)
        add(std::to_string(i), "stable", kStart + i % 7, {}, Outcome::kRejected);
    flush();
    const Rids all = rids({});
    ASSERT_EQ(all.size(), 3'500U);
    for (int i = 0; i < 3'500; ++i) ASSERT_EQ(all[i], std::to_string(i));
    EXPECT_EQ(rids({.limit = 2'000}).front(), "1500");
}

TEST_F(RecordReaderTest, AVisitorMayStop) {
    open();
    for (int i = 0; i < 5; ++i) add(std::to_string(i), "stable", kStart, {});
    flush();
    int seen = 0;
    auto reader = *RecordReader::open(folder_.path());
    ASSERT_TRUE(reader.for_each({}, 0, [&](const RequestRow&, double) { return ++seen < 3; }));
    EXPECT_EQ(seen, 3);
}

// Whatever the rows are, their costs sum to the pool's bill for the window.
TEST_F(RecordReaderTest, CostsSumToTheBill) {
    open();
    store_->set_price("stable", 1.2);
    now_ = kStart + kHour / 2;
    store_->set_price("stable", 2.4);
    store_->set_price("free", 0.0);
    std::mt19937 random(1);
    for (int i = 0; i < 500; ++i) {
        const Outcome outcome = i % 5 == 0 ? Outcome::kError : Outcome::kOk;
        add(std::to_string(i), i % 4 == 0 ? "free" : "stable",
            kStart + static_cast<std::int64_t>(random() % kHour),
            std::chrono::microseconds(random() % 1'000'000), outcome);
    }
    flush();
    const RecordQuery query{.since_ms = kStart, .until_ms = kStart + kHour};
    std::map<std::string, double> sums;
    for (const ReadRow& each : read_all(folder_.path(), query, kStart + 2 * kHour))
        sums[each.row.pool] += each.cost;
    EXPECT_NEAR(sums["stable"], 1.2 * 0.5 + 2.4 * 0.5, 1e-9);
    EXPECT_EQ(sums["free"], 0.0);
    // A part of the window costs that part, shared among the rows in it.
    double part = 0.0;
    for (const ReadRow& each : read_all(
             folder_.path(), {.since_ms = kStart, .until_ms = kStart + kHour / 4, .pool = "stable"},
             kStart + 2 * kHour))
        part += each.cost;
    EXPECT_NEAR(part, 1.2 * 0.25, 1e-9);
}

TEST_F(RecordReaderTest, ARowsCostDoesNotDependOnWhichRowsAreShown) {
    open();
    store_->set_price("stable", 3.6);
    add("a", "stable", kStart, std::chrono::milliseconds(100));
    add("b", "stable", kStart, std::chrono::milliseconds(300), Outcome::kError);
    add("never-began", "stable", kStart, {}, Outcome::kRejected);
    flush();
    const auto cost = [&](const std::string& rid) {
        const auto rows =
            read_all(folder_.path(), {.since_ms = kStart, .until_ms = kStart + 1'000, .id = rid},
                     kStart + kHour);
        return rows.size() == 1 ? rows[0].cost : -1.0;
    };
    EXPECT_NEAR(cost("a"), 3.6 / 3600.0 / 4.0, 1e-12);
    EXPECT_NEAR(cost("b"), 3.6 / 3600.0 * 3.0 / 4.0, 1e-12);
    EXPECT_EQ(cost("never-began"), 0.0);
}

TEST_F(RecordReaderTest, ABillEndsNow) {
    open();
    store_->set_price("stable", 1.0);
    flush();
    auto reader = *RecordReader::open(folder_.path());
    const auto bills = reader.bills({.since_ms = 0}, kStart + kHour);
    ASSERT_TRUE(bills.has_value());
    EXPECT_DOUBLE_EQ(bills->at("stable").bill, 1.0);
    EXPECT_DOUBLE_EQ(bills->at("stable").unattributed(), 1.0);
}

TEST_F(RecordReaderTest, WithoutRecordsThereIsAnErrorThatNamesThePlace) {
    const auto reader = RecordReader::open(folder_.path());
    ASSERT_FALSE(reader.has_value());
    EXPECT_EQ(reader.error().code(), ErrorCode::kNotFound);
    EXPECT_NE(reader.error().place().find("records.db"), std::string::npos);
}

}  // namespace
}  // namespace sluice::record
