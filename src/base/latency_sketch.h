#pragma once

// The distribution of the times between tokens, in memory that does not grow with their number.
//
// Values fall into buckets whose bounds grow by 2 % each, so any quantile is within 1 % of a value
// that was really measured (DDSketch, Masson et al., VLDB 2019). Buckets are the same everywhere:
// sketches of two requests, or of two gateways, add up to the sketch of both, bucket by bucket. A
// sketch holds only the buckets that occur: some hundred bytes for a stream, never more than 9 KiB.

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace sluice {

class LatencySketch {
public:
    /// Bucket 0 ends at one microsecond, the last at one hour or more.
    static constexpr double kGrowth = 1.02;
    static constexpr std::uint16_t kLastBucket = 1'112;

    struct Bucket {
        std::uint16_t index = 0;
        std::uint64_t count = 0;
        bool operator==(const Bucket&) const = default;
    };

    /// `tokens` came together, `gap` after those before: each took an even share of the gap.
    void add(std::chrono::nanoseconds gap, std::uint64_t tokens = 1);

    /// Adds `other` as if it had been measured `times` times.
    void merge(const LatencySketch& other, std::uint64_t times = 1);

    [[nodiscard]] bool empty() const { return count_ == 0; }
    [[nodiscard]] std::uint64_t count() const { return count_; }

    /// The value at rank ceil(share * count), 0 < share <= 1; nullopt if nothing was measured.
    /// Never above max().
    [[nodiscard]] std::optional<std::chrono::microseconds> quantile(double share) const;
    /// Exact, but for its fraction of a microsecond.
    [[nodiscard]] std::chrono::microseconds max() const { return max_; }

    /// What stands for the values of a bucket, in microseconds: 2 * kGrowth^index / (kGrowth + 1).
    [[nodiscard]] static double value_of(std::uint16_t index);

    /// Ascending; for storage.
    [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
    /// From storage, in any order; an index beyond the last counts for the last.
    static LatencySketch restore(const std::vector<Bucket>& buckets, std::chrono::microseconds max);

    bool operator==(const LatencySketch&) const = default;

private:
    void add_to_bucket(std::uint16_t index, std::uint64_t count);

    std::vector<Bucket> buckets_;
    std::uint64_t count_ = 0;
    std::chrono::microseconds max_{0};
};

}  // namespace sluice
