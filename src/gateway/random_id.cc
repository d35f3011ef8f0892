#include "gateway/random_id.h"

#include <chrono>
#include <random>

#include "base/hash.h"

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

std::string draw_rid() {
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    std::string rid;
    rid.reserve(32);
    append_hex(rid, static_cast<std::uint64_t>(now.count()), 12);
    append_hex(rid, random_u64(), 4);
    append_hex(rid, random_u64());
    return rid;
}

std::uint64_t draw_seed() { return random_u64() >> 11; }

}  // namespace sluice::gateway
