// Reads of the SSD tier at full depth, for bench/ssd.py: fills a folder with values of one size, says
// READY with the bytes that one entry takes on disk, and for each line of its input reads values at
// random for so many seconds and answers with bytes per second, as the disk gives them.
//
//   build/bench/ssd FOLDER VALUE_BYTES TOTAL_BYTES DEPTH

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iostream>
#include <random>
#include <semaphore>
#include <string>
#include <thread>

#include "kv/ssd_tier.h"

namespace {

using namespace sluice::kv;

std::string name(std::size_t i) { return "block" + std::to_string(i); }

bool wait_for_sync(SsdTier& tier) {
    std::promise<bool> synced;
    tier.sync([&](sluice::Result<void> done) { synced.set_value(done.has_value()); });
    return synced.get_future().get();
}

bool fill(SsdTier& tier, std::size_t count, std::size_t value_bytes) {
    std::mt19937_64 random(1);
    std::string value(value_bytes, '\0');
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t at = 0; at + 8 <= value.size(); at += 8) {
            const std::uint64_t word = random();
            value.replace(at, 8, reinterpret_cast<const char*>(&word), 8);
        }
        while (!tier.put(name(i), SharedBytes::own(value), {}, sluice::Retention::kChat))
            if (!wait_for_sync(tier)) return false;
    }
    return wait_for_sync(tier);
}

/// Reads at random until it is told to stop, with so many values asked for at a time: more than the
/// disk's depth, so that it has its depth while others are checked.
class Readers {
public:
    Readers(SsdTier& tier, std::size_t count, std::size_t asked)
        : tier_(tier), count_(count), asked_(asked) {}

    /// Values a second; 0 if one was missing.
    double run_for(std::chrono::duration<double> time) {
        const auto begin = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < asked_; ++i) next(i);
        std::this_thread::sleep_for(time);
        stop_ = true;
        for (std::size_t i = 0; i < asked_; ++i) ended_.acquire();
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        return missing_ ? 0 : static_cast<double>(read_) / passed.count();
    }

private:
    void next(std::uint64_t seed) {
        if (stop_) return ended_.release();
        // Steps of a linear congruential generator: as random as fio's.
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        tier_.get(name((seed >> 33) % count_), std::chrono::system_clock::now(),
                  [this, seed](sluice::Result<SharedBytes> value) {
                      if (!value) missing_ = true;
                      ++read_;
                      next(seed);
                  });
    }

    SsdTier& tier_;
    const std::size_t count_;
    const std::size_t asked_;
    std::atomic<bool> stop_ = false;
    std::atomic<bool> missing_ = false;
    std::atomic<std::size_t> read_ = 0;
    std::counting_semaphore<> ended_{0};
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    const std::size_t value_bytes = std::strtoull(argv[2], nullptr, 10);
    const std::size_t count = std::strtoull(argv[3], nullptr, 10) / value_bytes;
    const std::size_t depth = std::strtoull(argv[4], nullptr, 10);
    const std::uint64_t entry_bytes = ssd_entry_bytes(name(count).size(), value_bytes);
    SsdOptions options;
    options.dir = argv[1];
    options.bytes = 2 * count * entry_bytes + (std::uint64_t{1} << 30);
    options.read_depth = depth;
    auto tier = SsdTier::open(options);
    if (!tier || !fill(**tier, count, value_bytes)) {
        std::fprintf(stderr, "ssd: %s\n", tier ? "can't fill" : tier.error().to_string().c_str());
        return 1;
    }
    std::printf("READY %llu %s\n", static_cast<unsigned long long>(entry_bytes),
                (*tier)->stats().uring ? "io_uring" : "threads");
    std::fflush(stdout);
    double seconds = 0;
    while (std::cin >> seconds) {
        Readers readers(**tier, count, 2 * depth);
        const double values = readers.run_for(std::chrono::duration<double>(seconds));
        std::printf("%.0f\n", values * static_cast<double>(entry_bytes));
        std::fflush(stdout);
    }
    return 0;
}
