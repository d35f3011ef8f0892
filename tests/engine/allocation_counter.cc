#include "tests/engine/allocation_counter.h"

#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t count = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
    ++count;
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* const memory = alignment <= alignof(std::max_align_t)
                             ? std::malloc(bytes)
                             : std::aligned_alloc(alignment, rounded);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

}  // namespace

namespace sluice::test {

std::size_t allocations() { return count; }

}  // namespace sluice::test

// The other forms of new call these.
void* operator new(std::size_t bytes) { return counted(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
