#pragma once

// What a pass over a number of rows takes here and now: a running mean for each number of rows, from
// measurements. Between measured numbers it lies between their means; above them it is taken to grow
// in proportion, which is the most it can.

#include <array>
#include <cstddef>
#include <span>

namespace sluice::engine {

class RowCosts {
public:
    /// A pass over `rows` > 0 rows took `seconds`. A single outlier counts no more than twice the mean.
    void add(std::size_t rows, double seconds);

    /// Whether a pass over about as many rows was ever measured.
    [[nodiscard]] bool is_measured(std::size_t rows) const;

    /// Seconds of a pass over `rows` > 0 rows; 0 if nothing was measured yet.
    [[nodiscard]] double estimate(std::size_t rows) const;

private:
    static constexpr std::size_t kBuckets = 32;
    /// Most rows of a bucket; means are of a bucket.
    [[nodiscard]] static std::size_t most_rows(std::size_t bucket);
    [[nodiscard]] static std::size_t bucket_of(std::size_t rows);

    std::array<double, kBuckets> mean_{};  ///< 0: not measured.
};

}  // namespace sluice::engine
