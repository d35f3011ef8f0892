#include "tensor/rope.h"

#include <algorithm>

#include "base/assert.h"
#include "tensor/transcendental.h"

namespace sluice::tensor {
namespace {

// The pair index at which a rotation completes `turns` turns over the original context.
double correction_index(double turns, std::size_t dimensions, double theta, double context) {
    constexpr double kTwoPi = 6.28318530717958647692;
    return static_cast<double>(dimensions) * natural_log(context / (turns * kTwoPi)) /
           (2.0 * natural_log(theta));
}

}  // namespace

RopeTable::RopeTable(std::size_t dimensions, double theta, const YarnParams& yarn) {
    SLUICE_ASSERT(dimensions % 2 == 0 && theta > 1.0);
    const std::size_t pairs = dimensions / 2;
    const double low = correction_index(yarn.beta_fast, dimensions, theta, yarn.original_context);
    const double high = correction_index(yarn.beta_slow, dimensions, theta, yarn.original_context);
    // floor and ceil as in the paper's code; both indices are small.
    const auto first = std::max<double>(0, static_cast<double>(static_cast<std::int64_t>(low)));
    const auto last = std::min<double>(static_cast<double>(dimensions) - 1,
                                       static_cast<double>(static_cast<std::int64_t>(high)) + 1);
    const double width = std::max(last - first, 0.001);
    for (std::size_t pair = 0; pair < pairs; ++pair) {
        const double exponent = static_cast<double>(2 * pair) / static_cast<double>(dimensions);
        const double plain = exponential(-exponent * natural_log(theta));
        if (yarn.factor == 1.0) {
            frequencies_.push_back(plain);
            continue;
        }
        // 1 keeps the trained frequency (fast pairs), 0 divides it by the factor (slow pairs).
        const double keep = 1.0 - std::clamp((static_cast<double>(pair) - first) / width, 0.0, 1.0);
        frequencies_.push_back(plain / yarn.factor * (1.0 - keep) + plain * keep);
    }
}

void RopeTable::angles(std::uint64_t position, std::span<float> cos, std::span<float> sin) const {
    SLUICE_ASSERT(cos.size() == frequencies_.size() && sin.size() == frequencies_.size());
    for (std::size_t pair = 0; pair < frequencies_.size(); ++pair) {
        const SinCos angle = sin_cos(static_cast<double>(position) * frequencies_[pair]);
        cos[pair] = static_cast<float>(angle.cos);
        sin[pair] = static_cast<float>(angle.sin);
    }
}

void rotate(std::span<float> x, std::span<const float> cos, std::span<const float> sin) {
    SLUICE_ASSERT(x.size() == 2 * cos.size() && cos.size() == sin.size());
    for (std::size_t pair = 0; pair < cos.size(); ++pair) {
        const float a = x[2 * pair];
        const float b = x[2 * pair + 1];
        x[2 * pair] = a * cos[pair] - b * sin[pair];
        x[2 * pair + 1] = a * sin[pair] + b * cos[pair];
    }
}

}  // namespace sluice::tensor
