#include "kv/ssd_thread_reader.h"

#include <algorithm>
#include <utility>

namespace sluice::kv {
namespace {

constexpr std::size_t kThreadsMax = 8;

}  // namespace

SsdThreadReader::SsdThreadReader(const SsdReaderOptions& options,
                                 std::shared_ptr<SsdBuffers> buffers, const SsdFaults&)
    : buffers_(std::move(buffers)) {
    const std::size_t count = std::clamp<std::size_t>(options.depth, 1, kThreadsMax);
    for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
}

SsdThreadReader::~SsdThreadReader() {
    stop();
    for (std::thread& thread : threads_) thread.join();
    refuse_the_rest();
}

void SsdThreadReader::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        work_.wait(lock, [this] { return stopping_ || !tasks_.empty() || !reads_.empty(); });
        if (stopping_) return;
        if (!tasks_.empty()) {
            Task task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task();
        } else {
            SsdRead read = std::move(reads_.front());
            reads_.pop_front();
            lock.unlock();
            auto buffer = buffers_->take(read.bytes);
            const auto done = read.file->read({buffer.get(), read.bytes}, read.offset);
            read.file.reset();
            if (done) {
                read.done(std::move(buffer));
            } else {
                read.done(std::unexpected(done.error()));
            }
        }
        lock.lock();
    }
}

}  // namespace sluice::kv
