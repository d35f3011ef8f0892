#pragma once

// The few statistics that the card rests on. All intervals are two-sided at z standard errors; the
// card uses kZ = 3.29 (99.9 %), because it looks at many rows and metrics at once.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sluice::record {

inline constexpr double kZ = 3.29;

struct Interval {
    double low = 0.0;
    double high = 0.0;
};

/// Measured values, each standing for `weight` requests.
class Samples {
public:
    void add(double value, std::uint64_t weight);

    [[nodiscard]] bool empty() const { return values_.empty(); }
    /// Sum of the weights.
    [[nodiscard]] std::uint64_t weight() const { return weight_; }
    /// How many equally weighted values say as much: (sum w)^2 / sum w^2 (Kish).
    [[nodiscard]] double effective_size() const;

    /// The value at rank ceil(share * weight()), 0 < share <= 1; nullopt if there is none.
    [[nodiscard]] std::optional<double> quantile(double share) const;
    /// Of the true quantile, from order statistics: no assumption about the distribution. nullopt
    /// if the samples are too few to bound it on both sides.
    [[nodiscard]] std::optional<Interval> quantile_interval(double share, double z = kZ) const;

private:
    struct Value {
        double value;
        std::uint64_t weight;
    };
    void sort() const;

    mutable std::vector<Value> values_;
    mutable bool sorted_ = true;
    std::uint64_t weight_ = 0;
    double squares_ = 0.0;
};

/// Of a share of which `part` of `whole` was seen (Wilson's score interval); [0, 1] if nothing was.
[[nodiscard]] Interval wilson_interval(double part, double whole, double z = kZ);

/// Of second share minus first (Newcombe's hybrid score interval, his method 10).
[[nodiscard]] Interval difference_interval(double first_part, double first_whole,
                                           double second_part, double second_whole, double z = kZ);

}  // namespace sluice::record
