#pragma once

// Threads that work on one thing at a time, together. `run` splits a piece of work over the team and
// returns when all parts are done. Between two runs the members spin for a moment, because the next
// piece usually follows within microseconds; while a Step lasts they then stand by, offering their
// processor to whoever wants it, because a wake-up costs more than most gaps; and then they sleep, so
// that an idle engine costs nothing.
//
// A piece has as many parts as the team has members, but a part belongs to whoever takes it first: on
// a busy machine the owner does the parts of members that have no processor just then, and waits only
// for parts that are being computed. So what a part computes must not depend on who computes it.

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

    /// Members that work: all of them, or as many as `use` said last.
    [[nodiscard]] std::size_t size() const { return used_.load(std::memory_order_relaxed); }

    /// From now on `size` members work, at most as many as the team was made with; the others sleep. From
    /// the owner's thread only, between two runs. Cheap if nothing changes.
    void use(std::size_t size);

    /// As long as it lives, pieces of work follow each other closely. Made by the owner's thread, one at a
    /// time.
    class Step {
    public:
        explicit Step(ThreadTeam& team) : team_(team) {
            team_.in_step_.store(true, std::memory_order_relaxed);
        }
        ~Step() { team_.in_step_.store(false, std::memory_order_relaxed); }
        Step(const Step&) = delete;
        Step& operator=(const Step&) = delete;

    private:
        ThreadTeam& team_;
    };

    /// Calls `work(part)` once for each part below size(), at the same time where processors allow.
    /// From the owner's thread only.
    template <class Work>
    void run(const Work& work) {
        if (size() == 1) return work(std::size_t{0});
        start([](const void* context,
                 std::size_t part) { (*static_cast<const Work*>(context))(part); },
              &work);
        work(std::size_t{0});
        take_parts();
        wait();
    }

private:
    using Call = void (*)(const void* context, std::size_t part);

    void start(Call call, const void* context);
    void take_parts();
    void wait();
    void serve(std::size_t member);
    void rest(std::size_t member);
    /// Returns the round that follows `seen`.
    [[nodiscard]] std::uint32_t await_round(std::uint32_t seen);

    Call call_ = nullptr;
    const void* context_ = nullptr;
    /// Round in the upper half, the next part to take in the lower: a part is taken only in the round
    /// it was seen in.
    std::atomic<std::uint64_t> next_{kNoParts};
    std::atomic<std::uint32_t> round_{0};  ///< What sleeping members wait for.
    std::atomic<std::uint32_t> pending_{0};
    std::atomic<std::size_t> used_;  ///< Members that work, the owner included.
    std::atomic<bool> in_step_{false};
    std::atomic<bool> stopping_{false};
    std::vector<std::thread> members_;

    static constexpr std::uint64_t kNoParts = 0xFFFF'FFFF;
};

}  // namespace sluice
