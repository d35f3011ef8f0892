#include "gateway/random_id.h"

#include <fmt/format.h>

#include <random>

namespace sluice::gateway {
namespace {

std::uint64_t random_u64() {
    thread_local std::mt19937_64 generator{[] {
        std::random_device device;
        return (std::uint64_t{device()} << 32) | device();
    }()};
    return generator();
}

}  // namespace

std::string draw_rid() { return fmt::format("{:016x}{:016x}", random_u64(), random_u64()); }

std::uint64_t draw_seed() { return random_u64() >> 11; }

}  // namespace sluice::gateway
