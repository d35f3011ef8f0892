#include "base/file_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace sluice {
namespace {

TEST(FileLimitTest, ItIsRaisedToWhatTheSystemAllows) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit low{.rlim_cur = before.rlim_max / 2, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    EXPECT_EQ(raise_file_limit(), before.rlim_max);
    rlimit after{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
    EXPECT_EQ(after.rlim_cur, before.rlim_max);
}

}  // namespace
}  // namespace sluice
