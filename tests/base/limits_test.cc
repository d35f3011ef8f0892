#include "base/limits.h"

#include <set>

namespace sluice {
namespace {

TEST(LimitsTest, EveryLimitHasANameOfItsOwnAndAConsequence) {
    std::set<std::string_view> names;
    for (const limits::Limit& limit : limits::all()) {
        EXPECT_TRUE(names.insert(limit.name).second) << limit.name;
        EXPECT_GT(limit.value, 0U) << limit.name;
        EXPECT_FALSE(limit.what.empty()) << limit.name;
    }
}

}  // namespace
}  // namespace sluice
