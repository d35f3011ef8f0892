#pragma once

// Threads that work on one thing at a time, together. `run` splits a piece of work over the team and
// returns when all parts are done; between two runs the members spin for a moment, because the next
// piece usually follows within microseconds, and then sleep, so that an idle engine costs nothing.
//
// One owner calls `run`; the owner's thread is member 0. What the parts compute must not depend on
// who computes it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace sluice {

class ThreadTeam {
public:
    /// `size` counts the calling thread; at least 1.
    explicit ThreadTeam(std::size_t size);
    ~ThreadTeam();
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;

    [[nodiscard]] std::size_t size() const { return members_.size() + 1; }

    /// Calls `work(member)` once for each member below size(), at the same time.
    template <class Work>
    void run(const Work& work) {
        if (members_.empty()) return work(std::size_t{0});
        start([](const void* context,
                 std::size_t member) { (*static_cast<const Work*>(context))(member); },
              &work);
        work(std::size_t{0});
        wait();
    }

private:
    using Call = void (*)(const void* context, std::size_t member);

    void start(Call call, const void* context);
    void wait();
    void serve(std::size_t member);

    Call call_ = nullptr;
    const void* context_ = nullptr;
    std::atomic<std::uint32_t> round_{0};
    std::atomic<std::uint32_t> pending_{0};
    std::atomic<bool> stopping_{false};
    std::vector<std::thread> members_;
};

}  // namespace sluice
