#include "kv/ssd_reader.h"

#include <utility>

#include "base/log.h"
#include "kv/ssd_thread_reader.h"
#include "kv/ssd_uring_reader.h"

namespace sluice::kv {

std::unique_ptr<SsdReader> SsdReader::start(const SsdReaderOptions& options,
                                            std::shared_ptr<SsdBuffers> buffers,
                                            const SsdFaults& faults) {
    if (options.uring) {
        auto reader = SsdUringReader::start(options, buffers, faults);
        if (reader) return std::move(*reader);
        log::info("SSD tier: reads with threads, because {}", reader.error().to_string());
    }
    return std::make_unique<SsdThreadReader>(options, std::move(buffers), faults);
}

void SsdReader::read(SsdRead read) {
    bool sleeping = false;
    {
        const std::lock_guard lock(mutex_);
        reads_.push_back(std::move(read));
        sleeping = asleep();
    }
    if (sleeping) wake();
}

void SsdReader::run(Task task) {
    bool sleeping = false;
    {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
        sleeping = asleep();
    }
    if (sleeping) wake();
}

std::size_t SsdReader::waiting() const {
    const std::lock_guard lock(mutex_);
    return reads_.size();
}

void SsdReader::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake();
}

void SsdReader::refuse_the_rest() {
    std::unique_lock lock(mutex_);
    auto reads = std::exchange(reads_, {});
    auto tasks = std::exchange(tasks_, {});
    lock.unlock();
    for (Task& task : tasks) task();
    for (SsdRead& read : reads)
        read.done(std::unexpected(Error(ErrorCode::kUnavailable, "the SSD tier ends")));
}

}  // namespace sluice::kv
