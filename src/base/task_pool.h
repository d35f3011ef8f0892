#pragma once

// A few threads for work that would hold an event loop up. The queue is bounded: what doesn't fit is
// refused, so that a flood of work becomes an answer instead of memory.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sluice {

class TaskPool {
public:
    TaskPool(std::size_t threads, std::size_t queue_max);
    /// Finishes the tasks that run and drops those that wait.
    ~TaskPool();
    TaskPool(const TaskPool&) = delete;
    TaskPool& operator=(const TaskPool&) = delete;

    /// Any thread. False if the queue is full; the task is then not kept.
    [[nodiscard]] bool submit(std::function<void()> task);

private:
    void run();

    const std::size_t queue_max_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::function<void()>> queue_;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace sluice
