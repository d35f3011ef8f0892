#pragma once

// The reader for kernels and containers without io_uring: threads that each wait for one read.

#include <thread>
#include <vector>

#include "kv/ssd_reader.h"

namespace sluice::kv {

class SsdThreadReader : public SsdReader {
public:
    SsdThreadReader(const SsdReaderOptions& options, std::shared_ptr<SsdBuffers> buffers,
                    const SsdFaults& faults);
    ~SsdThreadReader() override;
    [[nodiscard]] std::string_view kind() const override { return "threads"; }

private:
    [[nodiscard]] bool asleep() override { return true; }
    void wake() override { work_.notify_all(); }
    void work();

    const std::shared_ptr<SsdBuffers> buffers_;
    std::condition_variable work_;
    std::vector<std::thread> threads_;
};

}  // namespace sluice::kv
