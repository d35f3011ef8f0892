#pragma once

// What the SSD tier's files take on disk. A claim is the count: whoever makes a file claims its bytes
// before, and they are free again when the claim ends with the file.
//
// Threads: any.

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace sluice::kv {

class SsdSpace {
public:
    /// Movable; ends with its scope. Outlived by the space.
    class Claim {
    public:
        Claim() = default;
        Claim(Claim&& other) noexcept
            : space_(std::exchange(other.space_, nullptr)), bytes_(other.bytes_) {}
        Claim& operator=(Claim&& other) noexcept {
            std::swap(space_, other.space_);
            std::swap(bytes_, other.bytes_);
            return *this;
        }
        ~Claim() { resize(0); }

        void resize(std::uint64_t bytes) {
            if (space_ == nullptr) return;
            space_->change(bytes_, bytes);
            bytes_ = bytes;
        }

    private:
        friend class SsdSpace;
        Claim(SsdSpace& space, std::uint64_t bytes) : space_(&space), bytes_(bytes) {}
        SsdSpace* space_ = nullptr;
        std::uint64_t bytes_ = 0;
    };

    [[nodiscard]] Claim claim(std::uint64_t bytes) {
        change(0, bytes);
        return {*this, bytes};
    }
    [[nodiscard]] std::uint64_t used() const {
        const std::lock_guard lock(mutex_);
        return used_;
    }
    /// Waits until a claim has ended or shrunk since `releases` was asked for.
    void wait_for_release(std::uint64_t since) {
        std::unique_lock lock(mutex_);
        released_.wait(lock, [&] { return releases_ != since; });
    }
    [[nodiscard]] std::uint64_t releases() const {
        const std::lock_guard lock(mutex_);
        return releases_;
    }

private:
    void change(std::uint64_t before, std::uint64_t after) {
        const std::lock_guard lock(mutex_);
        used_ += after - before;
        if (after < before) {
            ++releases_;
            released_.notify_all();
        }
    }

    mutable std::mutex mutex_;
    std::condition_variable released_;
    std::uint64_t used_ = 0;
    std::uint64_t releases_ = 0;
};

}  // namespace sluice::kv
