#pragma once

// What the tests of the SSD tier share: a folder of their own, values that can be told apart, and calls
// that wait for their callback.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "kv/ssd_tier.h"

namespace sluice::kv {

/// Where a test's files are: on disk, or in memory if there is a place for it with room enough. The
/// second is for tests that write much and care for the process's end, not for the disk.
enum class Place { kDisk, kMemory };

class SsdFolder {
public:
    explicit SsdFolder(Place place) : path_(parent(place) + "sluice-ssd-XXXXXX") {
        EXPECT_NE(::mkdtemp(path_.data()), nullptr);
    }
    ~SsdFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    SsdFolder(const SsdFolder&) = delete;
    SsdFolder& operator=(const SsdFolder&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

    /// What its files take on disk. Files may come and go meanwhile.
    [[nodiscard]] std::uint64_t bytes_on_disk() const {
        std::uint64_t bytes = 0;
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
            struct stat file{};
            if (::stat(entry.path().c_str(), &file) == 0)
                bytes += static_cast<std::uint64_t>(file.st_blocks) * 512;
        }
        return bytes;
    }

private:
    static std::string parent(Place place) {
        constexpr std::uintmax_t kRoom = std::uintmax_t{2} << 30;
        std::error_code error;
        const auto memory = std::filesystem::space("/dev/shm", error);
        const bool there = !error && memory.available >= kRoom && ::access("/dev/shm", W_OK) == 0;
        return place == Place::kMemory && there ? "/dev/shm/" : testing::TempDir();
    }

    std::string path_;
};

/// Bytes that follow from `seed` and differ for every other.
inline std::string value_of(std::uint64_t seed, std::size_t bytes) {
    std::string value(bytes, '\0');
    std::uint64_t state = seed * 0x9E3779B97F4A7C15U + 1;
    for (std::size_t i = 0; i < bytes; ++i) {
        if (i % 8 == 0) state = state * 6364136223846793005U + 1442695040888963407U;
        value[i] = static_cast<char>(state >> (8 * (i % 8)));
    }
    return value;
}

inline std::chrono::system_clock::time_point at_seconds(std::int64_t seconds) {
    return std::chrono::system_clock::time_point(std::chrono::seconds(seconds));
}

/// A tier with a clock that stands still unless the test moves it.
class SsdTierTest : public testing::Test {
protected:
    static constexpr std::int64_t kStart = 1'800'000'000;

    explicit SsdTierTest(Place place = Place::kDisk) : folder_(place) {}

    [[nodiscard]] SsdOptions options() {
        SsdOptions options;
        options.dir = folder_.path();
        options.bytes = 64 * kSegment;
        options.segment_bytes = kSegment;
        options.clock = [this] { return now(); };
        return options;
    }
    void open() { open(options()); }
    void open(SsdOptions options) {
        tier_.reset();
        auto tier = SsdTier::open(std::move(options));
        ASSERT_TRUE(tier.has_value()) << tier.error().to_string();
        tier_ = std::move(*tier);
    }

    [[nodiscard]] std::chrono::system_clock::time_point now() const { return at_seconds(now_); }
    bool put(const std::string& name, std::string value, std::optional<std::int64_t> seconds = {},
             Retention retention = Retention::kChat) {
        std::optional<SsdTier::Time> expires;
        if (seconds) expires = now() + std::chrono::seconds(*seconds);
        return tier_->put(name, SharedBytes::own(std::move(value)), expires, retention);
    }
    Result<SharedBytes> fetch(const std::string& name) {
        auto promise = std::make_shared<std::promise<Result<SharedBytes>>>();
        tier_->get(name, now(),
                   [promise](Result<SharedBytes> value) { promise->set_value(std::move(value)); });
        return promise->get_future().get();
    }
    /// The value, or the error's name in angle brackets.
    std::string get(const std::string& name) {
        const auto value = fetch(name);
        if (!value) return "<" + std::string(to_string(value.error().code())) + ">";
        return std::string(value->bytes);
    }
    Result<void> sync() {
        std::promise<Result<void>> promise;
        tier_->sync([&](Result<void> done) { promise.set_value(std::move(done)); });
        return promise.get_future().get();
    }
    std::size_t erase_if(const std::function<bool(std::string_view)>& which) {
        std::promise<std::size_t> promise;
        tier_->erase_if(which, [&](std::size_t erased) { promise.set_value(erased); });
        return promise.get_future().get();
    }

    static constexpr std::uint64_t kSegment = 1024 * 1024;
    SsdFolder folder_;
    std::atomic<std::int64_t> now_ = kStart;
    std::unique_ptr<SsdTier> tier_;
};

/// Waits for what other threads do, up to a minute.
template <class Condition>
bool eventually(Condition condition) {
    for (int i = 0; i < 6000; ++i) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

}  // namespace sluice::kv
