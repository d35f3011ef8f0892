#include "tensor/target.h"

#include <fmt/format.h>
#include <hwy/highway.h>
#include <hwy/targets.h>
#if HWY_ARCH_ARM_A64
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdlib>

namespace sluice::tensor {
namespace {

std::atomic<int> chosen{-1};

/// What the processor must have beyond Highway's target.
bool cpu_has_dot(Target target) {
#if HWY_ARCH_X86
    return target != Target::kAvx512Vnni || __builtin_cpu_supports("avx512vnni") != 0;
#elif HWY_ARCH_ARM_A64
    return target != Target::kNeonDot || (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
    return false;
#endif
}

std::int64_t highway_mask(Target target) {
    switch (target) {
        case Target::kAvx2: return HWY_AVX2;
        case Target::kAvx512:
        case Target::kAvx512Vnni: return HWY_AVX3;
        case Target::kNeon:
        case Target::kNeonDot: return HWY_NEON;
    }
    return 0;
}

}  // namespace

std::string_view to_string(Target target) {
    switch (target) {
        case Target::kAvx2: return "avx2";
        case Target::kAvx512: return "avx512";
        case Target::kAvx512Vnni: return "avx512vnni";
        case Target::kNeon: return "neon";
        case Target::kNeonDot: return "neondot";
    }
    return "unknown";
}

std::vector<Target> available_targets() {
    static const std::int64_t supported = hwy::SupportedTargets();
    std::vector<Target> targets;
    for (const Target target :
         {Target::kAvx2, Target::kAvx512, Target::kAvx512Vnni, Target::kNeon, Target::kNeonDot}) {
        if ((supported & HWY_TARGETS & highway_mask(target)) == 0) continue;
        if (!cpu_has_dot(target)) continue;
        targets.push_back(target);
    }
    return targets;
}

Result<void> use_target(Target target) {
    const auto available = available_targets();
    if (std::ranges::find(available, target) == available.end()) {
        return std::unexpected(Error::unsupported(
            fmt::format("this machine cannot run target '{}'", to_string(target)),
            "SLUICE_TARGET"));
    }
    hwy::SetSupportedTargetsForTest(highway_mask(target));
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    chosen.store(static_cast<int>(target), std::memory_order_release);
    return {};
}

Result<Target> select_target() {
    const auto available = available_targets();
    if (available.empty()) {
        return std::unexpected(Error::unsupported(
            "the native engine needs an x86-64 processor with AVX2 and FMA, or an AArch64 one",
            "cpu"));
    }
    Target target = available.back();
    if (const char* wanted = std::getenv("SLUICE_TARGET"); wanted != nullptr && *wanted != '\0') {
        const auto match =
            std::ranges::find_if(available, [&](Target each) { return to_string(each) == wanted; });
        if (match == available.end()) {
            std::string names;
            for (const Target each : available) names += fmt::format(" {}", to_string(each));
            return std::unexpected(Error::unsupported(
                fmt::format("'{}' is not one of this machine's targets:{}", wanted, names),
                "SLUICE_TARGET"));
        }
        target = *match;
    }
    if (auto used = use_target(target); !used) return std::unexpected(used.error());
    return target;
}

Target current_target() {
    if (const int target = chosen.load(std::memory_order_acquire); target >= 0) {
        return static_cast<Target>(target);
    }
    const auto available = available_targets();
    const Target best = available.empty() ? Target::kAvx2 : available.back();
    // Kernels are called whatever comes of this; without a target, select_target has already refused.
    if (const auto used = use_target(best); !used) return Target::kAvx2;
    return best;
}

}  // namespace sluice::tensor
