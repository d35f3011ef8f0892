#include "base/latency_sketch.h"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

std::uint16_t bucket_of(double microseconds) {
    if (!(microseconds > 1.0)) return 0;
    static const double kScale = 1.0 / std::log(LatencySketch::kGrowth);
    const double index = std::ceil(std::log(microseconds) * kScale);
    return static_cast<std::uint16_t>(
        std::min(index, static_cast<double>(LatencySketch::kLastBucket)));
}

}  // namespace

void LatencySketch::add(std::chrono::nanoseconds gap, std::uint64_t tokens) {
    if (tokens == 0) return;
    const double share =
        std::chrono::duration<double, std::micro>(gap).count() / static_cast<double>(tokens);
    add_to_bucket(bucket_of(share), tokens);
    max_ = std::max(max_, std::chrono::microseconds(std::llround(std::max(share, 0.0))));
}

void LatencySketch::add_to_bucket(std::uint16_t index, std::uint64_t count) {
    if (count == 0) return;
    count_ += count;
    const auto at = std::ranges::lower_bound(buckets_, index, {}, &Bucket::index);
    if (at != buckets_.end() && at->index == index) {
        at->count += count;
    } else {
        buckets_.insert(at, {index, count});
    }
}

void LatencySketch::merge(const LatencySketch& other, std::uint64_t times) {
    for (const Bucket& bucket : other.buckets_) add_to_bucket(bucket.index, bucket.count * times);
    max_ = std::max(max_, other.max_);
}

std::optional<std::chrono::microseconds> LatencySketch::quantile(double share) const {
    if (empty()) return std::nullopt;
    const auto rank = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
    std::uint64_t seen = 0;
    for (const Bucket& bucket : buckets_) {
        seen += bucket.count;
        if (seen < rank) continue;
        return std::min(max_, std::chrono::microseconds(std::llround(value_of(bucket.index))));
    }
    return max_;
}

double LatencySketch::value_of(std::uint16_t index) {
    return 2.0 * std::pow(kGrowth, index) / (kGrowth + 1.0);
}

LatencySketch LatencySketch::restore(const std::vector<Bucket>& buckets,
                                     std::chrono::microseconds max) {
    LatencySketch sketch;
    for (const Bucket& bucket : buckets)
        sketch.add_to_bucket(std::min(bucket.index, kLastBucket), bucket.count);
    sketch.max_ = max;
    return sketch;
}

}  // namespace sluice
