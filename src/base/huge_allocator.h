#pragma once

// For large tables that are looked at in no order: from the size of a huge page on they lie in huge
// pages, where the system has any to give, so that a look costs no walk through the page tables.

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace sluice {

template <class T>
struct HugeAllocator {
    using value_type = T;
    static constexpr std::size_t kPage = std::size_t{2} << 20;

    HugeAllocator() = default;
    template <class U>
    explicit(false) HugeAllocator(const HugeAllocator<U>& /*other*/) {}

    [[nodiscard]] T* allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        if (bytes < kPage) return static_cast<T*>(::operator new(bytes));
        void* const memory = ::operator new(bytes, std::align_val_t{kPage});
        // Only advice: without it the memory is as good, and slower.
        ::madvise(memory, bytes, MADV_HUGEPAGE);
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        if (bytes < kPage) return ::operator delete(memory);
        ::operator delete(memory, std::align_val_t{kPage});
    }

    template <class U>
    bool operator==(const HugeAllocator<U>& /*other*/) const {
        return true;
    }
};

}  // namespace sluice
