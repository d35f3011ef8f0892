#include "base/task_pool.h"

#include <utility>

namespace sluice {

TaskPool::TaskPool(std::size_t threads, std::size_t queue_max) : queue_max_(queue_max) {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

TaskPool::~TaskPool() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

bool TaskPool::submit(std::function<void()> task) {
    {
        const std::lock_guard lock(mutex_);
        if (stopping_ || queue_.size() >= queue_max_) return false;
        queue_.push_back(std::move(task));
    }
    wake_.notify_one();
    return true;
}

void TaskPool::run() {
    for (;;) {
        std::function<void()> task;
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
            if (stopping_) return;
            task = std::move(queue_.front());
            queue_.pop_front();
        }
        task();
    }
}

}  // namespace sluice
