#include "tensor/float_environment.h"

#include <cfenv>
#include <limits>

namespace sluice::tensor {

// FE_DFL_ENV also clears flush-to-zero and denormals-are-zero: they are bits of MXCSR on x86 and of
// FPCR on AArch64, which glibc restores as a whole.
void use_exact_float_environment() { std::fesetenv(FE_DFL_ENV); }

bool float_environment_is_exact() {
    // volatile: computed here and now, not by the compiler.
    volatile float smallest = std::numeric_limits<float>::min();
    volatile float subnormal = smallest * 0.5F;
    volatile float doubled = subnormal * 2.0F;
    volatile float one = 1.0F;
    volatile float tie = one + 0x1p-24F;   // Half of the last place: to even is down.
    volatile float up = one + 0x1.8p-23F;  // One and a half: to even is up.
    return subnormal != 0.0F && doubled == smallest && tie == 1.0F && up == 1.0F + 0x1p-22F;
}

}  // namespace sluice::tensor
