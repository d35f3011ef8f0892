#include "tensor/machine_peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "tensor/aligned_buffer.h"
#include "tensor/target.h"

#ifndef SLUICE_TENSOR_MACHINE_PEAK_TYPES
#define SLUICE_TENSOR_MACHINE_PEAK_TYPES
namespace sluice::tensor {
inline constexpr std::size_t kLineFloats = 16;  ///< Of a cache line.
/// Places at which one thread reads at a time: a prefetcher that follows eight streams hides more latency
/// than one that follows a single one (Ice Lake: 15 instead of 11 GB/s from memory).
inline constexpr std::size_t kStreams = 8;
inline constexpr std::size_t kReadUnit = kStreams * kLineFloats;  ///< Floats.
}  // namespace sluice::tensor
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tensor/machine_peak.cc"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "tensor/dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::tensor::HWY_NAMESPACE {

/// Independent chains: enough to hide the latency of one, few enough for sixteen registers.
inline constexpr std::size_t kChains = 12;

// `steps` multiply-adds in each chain. Returns how many there were, lanes included.
HWY_ATTR double float_chains(std::size_t steps, float* sink) {
    const Floats d;
    const FloatVec factor = hn::Set(d, 0.5F);
    FloatVec chains[kChains];
#pragma GCC unroll 16
    for (FloatVec& chain : chains) chain = hn::Set(d, 1.0F);
    for (std::size_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
        for (FloatVec& chain : chains) chain = hn::MulAdd(chain, factor, factor);
    }
    FloatVec sum = chains[0];
#pragma GCC unroll 16
    for (std::size_t i = 1; i < kChains; ++i) sum = hn::Add(sum, chains[i]);
    *sink = hn::GetLane(sum);
    return static_cast<double>(steps * kChains * kLanes);
}

template <class Dot>
HWY_INLINE double int_chains_with(std::size_t steps, std::int32_t* sink) {
    const Ints di;
    IntVec chains[kChains];
#pragma GCC unroll 16
    for (IntVec& chain : chains) chain = hn::Zero(di);
    for (std::size_t step = 0; step < steps; ++step) {
        // Weights that change keep the compiler from taking anything out of the loop.
#pragma GCC unroll 16
        for (std::size_t i = 0; i < kChains; ++i)
            chains[i] = Dot()(chains[i], chains[(i + 1) % kChains], 0x01020304);
    }
    IntVec sum = chains[0];
#pragma GCC unroll 16
    for (std::size_t i = 1; i < kChains; ++i) sum = hn::Add(sum, chains[i]);
    *sink = hn::GetLane(sum);
    return static_cast<double>(steps * kChains * kLanes * 4);
}

HWY_ATTR double int_chains(std::size_t steps, std::int32_t* sink, [[maybe_unused]] bool has_dot) {
#if HWY_TARGET == HWY_AVX3
    if (has_dot) return int_chains_with<VnniDot>(steps, sink);
#elif HWY_ARCH_ARM_A64
    if (has_dot) return int_chains_with<SdotDot>(steps, sink);
#endif
    return int_chains_with<WideDot>(steps, sink);
}

// Reads `count` floats, a multiple of kReadUnit.
HWY_ATTR void read_floats(const float* from, std::size_t count, float* sink) {
    const Floats d;
    FloatVec sums[kStreams];
#pragma GCC unroll 8
    for (FloatVec& sum : sums) sum = hn::Zero(d);
    const std::size_t part = count / kStreams;
    for (std::size_t i = 0; i < part; i += kLineFloats) {
#pragma GCC unroll 8
        for (std::size_t s = 0; s < kStreams; ++s) {
#pragma GCC unroll 4
            for (std::size_t v = 0; v < kLineFloats; v += kLanes)
                sums[s] = hn::Add(sums[s], hn::Load(d, from + s * part + i + v));
        }
    }
#pragma GCC unroll 8
    for (std::size_t s = 1; s < kStreams; ++s) sums[0] = hn::Add(sums[0], sums[s]);
    *sink = hn::GetLane(sums[0]);
}

}  // namespace sluice::tensor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::tensor {

HWY_EXPORT(float_chains);
HWY_EXPORT(int_chains);
HWY_EXPORT(read_floats);

namespace {

constexpr int kRuns = 5;
constexpr std::size_t kSteps = 400'000;
constexpr std::size_t kReadBytes = std::size_t{128} << 20;  ///< By each member, a run.
constexpr std::size_t kWorkingSetMax = std::size_t{512} << 20;

// The most per second of some runs, all members at it together; work(member) returns its own amount.
template <class Work>
double most_per_second(ThreadTeam& team, const Work& work) {
    using Clock = std::chrono::steady_clock;
    std::vector<double> amounts(team.size());
    double most = 0.0;
    for (int run = 0; run < kRuns; ++run) {
        const auto start = Clock::now();
        team.run([&](std::size_t member) { amounts[member] = work(member); });
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        double amount = 0.0;
        for (const double each : amounts) amount += each;
        most = std::max(most, amount / seconds);
    }
    return most;
}

}  // namespace

MachinePeak measure_peak(ThreadTeam& team) {
    const Target target = current_target();
    const bool has_dot = target == Target::kAvx512Vnni || target == Target::kNeonDot;
    std::vector<float> floats(team.size() * kLineFloats);  // Sinks, a cache line each.
    std::vector<std::int32_t> ints(team.size() * kLineFloats);
    return {.float_multiply_adds = most_per_second(team,
                                                   [&](std::size_t member) {
                                                       return HWY_DYNAMIC_DISPATCH(float_chains)(
                                                           kSteps, &floats[member * kLineFloats]);
                                                   }),
            .int8_multiply_adds = most_per_second(team, [&](std::size_t member) {
                return HWY_DYNAMIC_DISPATCH(int_chains)(kSteps, &ints[member * kLineFloats],
                                                        has_dot);
            })};
}

MemoryReader::MemoryReader(ThreadTeam& team, std::size_t working_set)
    : team_(&team),
      part_(std::max<std::size_t>(1, std::min(working_set, kWorkingSetMax) / sizeof(float) /
                                         team.size() / kReadUnit) *
            kReadUnit),
      memory_(part_ * team.size()) {}

double MemoryReader::measure() {
    std::vector<float> sinks(team_->size() * kLineFloats);
    return most_per_second(*team_, [&](std::size_t member) {
        const std::size_t bytes = part_ * sizeof(float);
        const std::size_t times = std::max<std::size_t>(1, kReadBytes / bytes);
        for (std::size_t i = 0; i < times; ++i) HWY_DYNAMIC_DISPATCH(read_floats)
        (memory_.data() + member * part_, part_, &sinks[member * kLineFloats]);
        return static_cast<double>(bytes * times);
    });
}

}  // namespace sluice::tensor
#endif  // HWY_ONCE
