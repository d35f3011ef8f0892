#include "base/retention.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(RetentionTest, NamesAreReadBack) {
    for (const Retention each : {Retention::kAgent, Retention::kChat, Retention::kNone})
        EXPECT_EQ(retention_from(to_string(each)), each);
    for (const char* other : {"", "Agent", "agents", "chat "})
        EXPECT_FALSE(retention_from(other)) << other;
}

}  // namespace
}  // namespace sluice
