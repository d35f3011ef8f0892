#include "base/huge_allocator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace sluice {
namespace {

using Table = std::vector<std::uint64_t, HugeAllocator<std::uint64_t>>;
constexpr std::size_t kPage = HugeAllocator<std::uint64_t>::kPage;

TEST(HugeAllocatorTest, LargeTablesBeginWithAPageAndKeepTheirContentAsTheyGrow) {
    Table table;
    for (std::uint64_t i = 0; i < 2 * kPage / sizeof(std::uint64_t); ++i) table.push_back(i);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(table.data()) % kPage, 0U);
    for (std::uint64_t i = 0; i < table.size(); ++i) ASSERT_EQ(table[i], i);
    Table other = std::move(table);
    table = Table{1, 2, 3};
    std::swap(table, other);
    EXPECT_EQ(other.size(), 3U);
    table.clear();
    table.shrink_to_fit();
    EXPECT_EQ(table.capacity(), 0U);
}

}  // namespace
}  // namespace sluice
