#include "tensor/transcendental.h"

#include <cmath>

namespace sluice::tensor {
namespace {

TEST(TranscendentalTest, AgreesWithTheCLibraryWithinItsStatedErrors) {
    for (double x = -60.0; x < 60.0; x += 0.0313)
        ASSERT_NEAR(exponential(x) / std::exp(x), 1.0, 1e-14) << x;
    for (double x = 1e-9; x < 1e9; x *= 1.003)
        ASSERT_NEAR(natural_log(x), std::log(x), 1e-14 * std::max(1.0, std::fabs(std::log(x))));
    for (double x = -200'000.0; x < 200'000.0; x += 17.3711) {
        const SinCos angle = sin_cos(x);
        ASSERT_NEAR(angle.sin, std::sin(x), 1e-12) << x;
        ASSERT_NEAR(angle.cos, std::cos(x), 1e-12) << x;
    }
}

}  // namespace
}  // namespace sluice::tensor
