#pragma once

// Memory that a disk can write into directly, used again: fresh pages for each read cost as much as
// the checksum over what is read.
//
// Threads: any. Buffers may outlive the pool's last owner but themselves.

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace sluice::kv {

class SsdBuffers : public std::enable_shared_from_this<SsdBuffers> {
public:
    /// Keeps at most `idle_bytes` that nobody uses.
    explicit SsdBuffers(std::size_t idle_bytes) : idle_bytes_max_(idle_bytes) {}
    ~SsdBuffers();
    SsdBuffers(const SsdBuffers&) = delete;
    SsdBuffers& operator=(const SsdBuffers&) = delete;

    /// At least `bytes`, at the start of a sector, with anything in them.
    [[nodiscard]] std::shared_ptr<std::byte> take(std::size_t bytes);

private:
    void give_back(std::byte* data, std::size_t bytes);

    std::mutex mutex_;
    std::map<std::size_t, std::vector<std::byte*>> idle_;
    std::size_t idle_bytes_ = 0;
    const std::size_t idle_bytes_max_;
};

}  // namespace sluice::kv
