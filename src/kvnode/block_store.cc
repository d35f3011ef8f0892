#include "kvnode/block_store.h"

#include <algorithm>
#include <cmath>

namespace sluice::kvnode {
namespace {

/// What the newest measurement counts in an average.
constexpr double kNewest = 0.125;

double averaged(double before, double now) {
    return before == 0 ? now : before + (now - before) * kNewest;
}

}  // namespace

void StoreStats::add_round_trip(std::chrono::nanoseconds time) {
    using Micro = std::chrono::duration<double, std::micro>;
    const double average = averaged(static_cast<double>(round_trip.count()), Micro(time).count());
    // At least one: zero says that nothing was measured.
    round_trip = std::chrono::microseconds(std::max<std::int64_t>(1, std::llround(average)));
}

void StoreStats::add_load(std::size_t bytes, std::chrono::nanoseconds time) {
    const double seconds = std::max(1e-9, std::chrono::duration<double>(time).count());
    bytes_per_second = averaged(bytes_per_second, static_cast<double>(bytes) / seconds);
}

}  // namespace sluice::kvnode
