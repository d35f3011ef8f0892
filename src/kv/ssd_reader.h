#pragma once

// Reads from segments, many at a time, on threads of its own: io_uring where the kernel lets us,
// otherwise a few threads that wait.
//
// Threads: `read` and `run` from any. What was handed over runs on a thread of the reader; with io_uring
// that is one, so nothing runs beside anything else.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kv/ssd_buffers.h"
#include "kv/ssd_file.h"

namespace sluice::kv {

struct SsdRead {
    std::shared_ptr<const SsdFile> file;
    std::uint64_t offset = 0;  ///< At a sector.
    std::size_t bytes = 0;     ///< Whole sectors.
    /// Called once. Errors: `kIo`; `kCorrupt`: the file ends before; `kUnavailable`: the reader ends.
    std::move_only_function<void(Result<std::shared_ptr<std::byte>>)> done;
};

struct SsdReaderOptions {
    std::size_t depth = 32;  ///< Reads that the disk has at a time.
    std::size_t bytes =
        256 * 1024 * 1024;  ///< What they may add up to; one may always be under way.
    bool uring = true;
};

class SsdReader {
public:
    using Task = std::move_only_function<void()>;

    /// The best that works here; says so in the log if that isn't io_uring.
    [[nodiscard]] static std::unique_ptr<SsdReader> start(const SsdReaderOptions& options,
                                                          std::shared_ptr<SsdBuffers> buffers,
                                                          const SsdFaults& faults);
    /// What the disk has ends first; what has not begun ends with `kUnavailable`.
    virtual ~SsdReader() = default;
    SsdReader(const SsdReader&) = delete;
    SsdReader& operator=(const SsdReader&) = delete;

    void read(SsdRead read);
    /// Soon, and in order with other tasks.
    void run(Task task);
    [[nodiscard]] std::size_t waiting() const;
    [[nodiscard]] virtual std::string_view kind() const = 0;

protected:
    SsdReader() = default;
    /// Whether somebody must be woken for new work; asked under the mutex.
    [[nodiscard]] virtual bool asleep() = 0;
    virtual void wake() = 0;
    /// From the destructor of the class that owns the threads, before it joins them.
    void stop();
    /// Reads that are still to come end with an error; on the last of the threads.
    void refuse_the_rest();

    mutable std::mutex mutex_;
    std::deque<SsdRead> reads_;
    std::deque<Task> tasks_;
    bool stopping_ = false;
};

}  // namespace sluice::kv
