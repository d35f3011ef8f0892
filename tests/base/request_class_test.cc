#include "base/request_class.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(RequestClassTest, NamesGoThereAndBack) {
    for (int i = 0; i < kOutcomes; ++i) {
        const auto outcome = static_cast<Outcome>(i);
        EXPECT_EQ(parse_outcome(to_string(outcome)), outcome);
    }
    for (int i = 0; i < kKinds; ++i) {
        const auto kind = static_cast<RequestKind>(i);
        EXPECT_EQ(parse_kind(to_string(kind)), kind);
    }
    EXPECT_FALSE(parse_outcome("okay").has_value());
    EXPECT_EQ(parse_role("shadow"), RequestRole::kShadow);
    EXPECT_EQ(parse_recompute_cause("hole"), RecomputeCause::kHole);
}

TEST(RequestClassTest, TheUpperEndBelongsToTheBucket) {
    EXPECT_EQ(to_string(length_bucket(16 * 1024)), "<=16k");
    EXPECT_EQ(to_string(length_bucket(16 * 1024 + 1)), "16k-64k");
    EXPECT_EQ(to_string(length_bucket(256 * 1024)), "64k-256k");
    EXPECT_EQ(to_string(length_bucket(256 * 1024 + 1)), ">256k");
}

TEST(RequestClassTest, NeitherTheClientNorASuccessIsThePoolsFailure) {
    EXPECT_FALSE(is_pools_failure(Outcome::kOk));
    EXPECT_FALSE(is_pools_failure(Outcome::kClientGone));
    EXPECT_FALSE(is_pools_failure(Outcome::kRejected));
    EXPECT_TRUE(is_pools_failure(Outcome::kWorkerLost));
}

}  // namespace
}  // namespace sluice
