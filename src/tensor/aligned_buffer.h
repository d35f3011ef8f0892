#pragma once

// Zeroed memory that starts on a cache line, for anything a vector load touches. Large buffers get
// pages of 2 MiB where the system has them: streaming through small ones costs a tenth of the speed.

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace sluice::tensor {

/// While one lives on a thread, the buffers made there have a size and no memory: what something would
/// take is counted by the code that would take it. Nothing may be read or written meanwhile.
class DryRun {
public:
    DryRun() : outer_(std::exchange(current_, this)) {}
    ~DryRun() { current_ = outer_; }
    DryRun(const DryRun&) = delete;
    DryRun& operator=(const DryRun&) = delete;

    /// Of all buffers made so far.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

private:
    friend class AlignedBuffer;

    static inline thread_local DryRun* current_ = nullptr;
    DryRun* outer_;
    std::size_t bytes_ = 0;
};

class AlignedBuffer {
public:
    static constexpr std::size_t kAlignment = 64;

    AlignedBuffer() = default;
    explicit AlignedBuffer(std::size_t bytes) : size_(bytes) {
        if (bytes == 0) return;
        if (DryRun::current_ != nullptr) {
            DryRun::current_->bytes_ += bytes;
            return;
        }
        const std::size_t alignment = bytes >= 4 * kHugePage ? kHugePage : kAlignment;
        const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
        data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
        if (!data_) throw std::bad_alloc();
        if (alignment == kHugePage) ::madvise(data_.get(), rounded, MADV_HUGEPAGE);
        std::memset(data_.get(), 0, rounded);
    }

    [[nodiscard]] std::byte* data() { return data_.get(); }
    [[nodiscard]] const std::byte* data() const { return data_.get(); }
    [[nodiscard]] std::size_t size() const { return size_; }

    template <class T>
    [[nodiscard]] std::span<T> as() {
        return {reinterpret_cast<T*>(data_.get()), size_ / sizeof(T)};
    }
    template <class T>
    [[nodiscard]] std::span<const T> as() const {
        return {reinterpret_cast<const T*>(data_.get()), size_ / sizeof(T)};
    }

private:
    static constexpr std::size_t kHugePage = std::size_t{2} << 20;

    struct Free {
        void operator()(std::byte* data) const { std::free(data); }
    };
    std::unique_ptr<std::byte, Free> data_;
    std::size_t size_ = 0;
};

/// A row-major f32 array, zeroed.
class FloatBuffer {
public:
    FloatBuffer() = default;
    explicit FloatBuffer(std::size_t count) : buffer_(count * sizeof(float)), size_(count) {}

    [[nodiscard]] float* data() { return reinterpret_cast<float*>(buffer_.data()); }
    [[nodiscard]] const float* data() const {
        return reinterpret_cast<const float*>(buffer_.data());
    }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] float& operator[](std::size_t index) { return data()[index]; }
    [[nodiscard]] const float& operator[](std::size_t index) const { return data()[index]; }

private:
    AlignedBuffer buffer_;
    std::size_t size_ = 0;
};

}  // namespace sluice::tensor
