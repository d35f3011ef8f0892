#pragma once

// The reader over io_uring: one thread keeps many reads at the disk.

#include <liburing.h>

#include <memory>
#include <thread>

#include "base/unique_fd.h"
#include "kv/ssd_reader.h"

namespace sluice::kv {

class SsdUringReader : public SsdReader {
public:
    /// Error `kUnavailable`: the kernel has no io_uring, or won't let us.
    [[nodiscard]] static Result<std::unique_ptr<SsdUringReader>> start(
        const SsdReaderOptions& options, std::shared_ptr<SsdBuffers> buffers,
        const SsdFaults& faults);
    ~SsdUringReader() override;
    [[nodiscard]] std::string_view kind() const override { return "io_uring"; }

private:
    /// One read at the disk, or waiting there because a planted fault makes it slow.
    struct Flight {
        SsdRead read;
        std::shared_ptr<std::byte> buffer;
        std::size_t transferred = 0;
        bool delayed = false;
        __kernel_timespec delay{};
    };

    SsdUringReader(const SsdReaderOptions& options, std::shared_ptr<SsdBuffers> buffers,
                   const SsdFaults& faults);
    struct Ended {
        std::unique_ptr<Flight> flight;
        Result<void> result;
    };

    [[nodiscard]] bool asleep() override { return std::exchange(sleeping_, false); }
    void wake() override;
    void work();
    void listen();
    void take_reads();
    void run_tasks();
    /// Under the mutex: whether the disk gets another read now.
    [[nodiscard]] bool may_begin() const;
    /// Then whoever brings work wakes the thread.
    [[nodiscard]] bool nothing_to_do();
    [[nodiscard]] bool ends();
    void harvest();
    void hand_over();
    void begin(std::unique_ptr<Flight> flight);
    void submit(std::unique_ptr<Flight> flight);
    void land(std::unique_ptr<Flight> flight, int result);
    void end(std::unique_ptr<Flight> flight, Result<void> result);
    [[nodiscard]] io_uring_sqe& next_sqe();

    const SsdReaderOptions options_;
    const std::shared_ptr<SsdBuffers> buffers_;
    const SsdFaults& faults_;
    io_uring ring_{};
    UniqueFd wakeups_;
    std::uint64_t woken_ = 0;  ///< What is read from `wakeups_` lands here.
    std::size_t in_flight_ = 0;
    std::size_t bytes_in_flight_ = 0;
    std::deque<Ended> ended_;  ///< Not handed over yet.
    bool sleeping_ = false;    ///< Under the mutex.
    std::thread thread_;
};

}  // namespace sluice::kv
