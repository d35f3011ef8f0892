#include "kv/name_table.h"

#include <deque>
#include <set>
#include <string>

namespace sluice::kv {
namespace {

class NameTableTest : public testing::Test {
protected:
    NamedEntry& add(const std::string& name) {
        NamedEntry& entry = entries_.emplace_back();
        entry.name = name;
        entry.hash = NameTable::hash_of(name);
        table_.insert(entry);
        return entry;
    }
    void erase(const std::string& name) {
        table_.erase(*table_.find(name, NameTable::hash_of(name)));
    }
    bool contains(const std::string& name) const {
        return table_.find(name, NameTable::hash_of(name)) != nullptr;
    }

    NameTable table_;
    std::deque<NamedEntry> entries_;
};

TEST_F(NameTableTest, FindsWhatIsThereAndNothingElse) {
    for (int i = 0; i < 1'000; ++i) add("name " + std::to_string(i));
    for (int i = 0; i < 1'000; i += 2) erase("name " + std::to_string(i));
    for (int i = 0; i < 1'000; ++i) EXPECT_EQ(contains("name " + std::to_string(i)), i % 2 == 1);
    EXPECT_EQ(table_.size(), 500U);
}

TEST_F(NameTableTest, GrowsWithItsEntriesAndShrinksAfterThem) {
    const std::size_t empty = table_.bytes();
    for (int i = 0; i < 1'000; ++i) {
        const std::size_t before = table_.bytes();
        const std::size_t growth = table_.growth_bytes();
        add(std::to_string(i));
        EXPECT_LE(table_.bytes(), before + growth);
    }
    EXPECT_GE(table_.bytes(), 1'000 * sizeof(void*));
    for (int i = 0; i < 1'000; ++i) erase(std::to_string(i));
    EXPECT_EQ(table_.bytes(), empty);
}

TEST_F(NameTableTest, TwoNamesOfOneHashAreTwo) {
    NamedEntry first{.name = "first", .hash = 7};
    NamedEntry second{.name = "second", .hash = 7};
    table_.insert(first);
    table_.insert(second);
    EXPECT_EQ(table_.find("first", 7), &first);
    EXPECT_EQ(table_.find("second", 7), &second);
    table_.erase(second);
    EXPECT_EQ(table_.find("first", 7), &first);
    EXPECT_EQ(table_.find("second", 7), nullptr);
}

/// What is here during a whole scan is met, whatever comes, goes and resizes the table meanwhile.
void scan_while(NameTable& table, const std::set<std::string>& here,
                const std::function<void(int)>& meanwhile) {
    std::set<std::string> met;
    std::uint64_t cursor = 0;
    int step = 0;
    do {
        cursor = table.scan(cursor, 10, [&](NamedEntry& entry) { met.insert(entry.name); });
        meanwhile(step++);
    } while (cursor != 0);
    for (const std::string& name : here) EXPECT_TRUE(met.contains(name)) << name;
    EXPECT_GT(step, 5);
}

TEST_F(NameTableTest, AScanMeetsAllWhileTheTableGrows) {
    std::set<std::string> here;
    for (int i = 0; i < 300; ++i) here.insert(add(std::to_string(i)).name);
    scan_while(table_, here, [&](int step) {
        for (int i = 0; step < 30 && i < 100; ++i)
            add("more " + std::to_string(step) + " " + std::to_string(i));
    });
}

TEST_F(NameTableTest, AScanMeetsAllWhileTheTableShrinks) {
    std::set<std::string> here;
    for (int i = 0; i < 100; ++i) here.insert(add(std::to_string(i)).name);
    for (int i = 0; i < 5'000; ++i) add("more " + std::to_string(i));
    scan_while(table_, here, [&](int step) {
        for (int i = 0; step < 50 && i < 100; ++i) erase("more " + std::to_string(100 * step + i));
    });
}

}  // namespace
}  // namespace sluice::kv
