#include "kv/ssd_buffers.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "kv/ssd_format.h"

namespace sluice::kv {
SsdBuffers::~SsdBuffers() {
    for (auto& [bytes, buffers] : idle_)
        for (std::byte* data : buffers) std::free(data);
}

std::shared_ptr<std::byte> SsdBuffers::take(std::size_t bytes) {
    const std::size_t size = whole_sectors(std::max<std::size_t>(bytes, 1));
    std::byte* data = nullptr;
    {
        const std::lock_guard lock(mutex_);
        if (auto found = idle_.find(size); found != idle_.end() && !found->second.empty()) {
            data = found->second.back();
            found->second.pop_back();
            idle_bytes_ -= size;
        }
    }
    if (data == nullptr) data = static_cast<std::byte*>(std::aligned_alloc(kSsdSectorBytes, size));
    if (data == nullptr) throw std::bad_alloc();
    return {data,
            [pool = shared_from_this(), size](std::byte* done) { pool->give_back(done, size); }};
}

void SsdBuffers::give_back(std::byte* data, std::size_t bytes) {
    {
        const std::lock_guard lock(mutex_);
        if (idle_bytes_ + bytes <= idle_bytes_max_) {
            idle_[bytes].push_back(data);
            idle_bytes_ += bytes;
            return;
        }
    }
    std::free(data);
}

}  // namespace sluice::kv
