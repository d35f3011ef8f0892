#include "tensor/self_test.h"

#include <cfenv>

#include "tensor/float_environment.h"
#include "tensor/target.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sluice::tensor {
namespace {

TEST(SelfTest, PassesOnEveryTarget) {
    for (const Target target : available_targets()) {
        ASSERT_TRUE(use_target(target).has_value());
        const auto passed = self_test();
        EXPECT_TRUE(passed.has_value()) << passed.error().to_string() << " " << self_test_digest();
    }
    ASSERT_TRUE(use_target(available_targets().back()).has_value());
}

// The inverse control: what the test must notice, it notices.
TEST(SelfTest, AnotherRoundingIsNoticed) {
    const std::string exact = self_test_digest();
    ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
    const std::string digest = self_test_digest();
    const bool passed = self_test().has_value();
    use_exact_float_environment();
    EXPECT_NE(digest, exact);
    EXPECT_FALSE(passed);
    EXPECT_TRUE(self_test().has_value());
}

#if defined(__x86_64__)
TEST(FloatEnvironmentTest, FlushedSubnormalsAreNoticedAndMended) {
    for (const unsigned bit : {0x8000U, 0x0040U}) {  // FTZ, DAZ
        _mm_setcsr(_mm_getcsr() | bit);
        EXPECT_FALSE(float_environment_is_exact()) << bit;
        use_exact_float_environment();
        EXPECT_TRUE(float_environment_is_exact());
    }
}
#endif

}  // namespace
}  // namespace sluice::tensor
