#include "base/thread_team.h"

#include <sched.h>

#include "base/assert.h"

namespace sluice {
namespace {

// About 30 microseconds of pauses on current x86 cores: longer than the gap between two pieces of one
// step, shorter than a wake-up is worth.
constexpr int kSpins = 1'000;

// How often a member offers its processor in one gap of a step before it sleeps all the same, some
// hundreds of nanoseconds each: a piece that the owner does alone may take long.
constexpr int kYields = 2'000;

void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace

ThreadTeam::ThreadTeam(std::size_t size) : used_(size) {
    SLUICE_ASSERT(size >= 1);
    for (std::size_t member = 1; member < size; ++member)
        members_.emplace_back([this, member] { serve(member); });
}

ThreadTeam::~ThreadTeam() {
    stopping_.store(true, std::memory_order_relaxed);
    use(members_.size() + 1);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    for (std::thread& member : members_) member.join();
}

void ThreadTeam::use(std::size_t size) {
    SLUICE_ASSERT(size >= 1 && size <= members_.size() + 1);
    if (size == this->size()) return;
    // A member that is late looks at the last round still: with more parts, it would find one there.
    next_.fetch_or(kNoParts, std::memory_order_acq_rel);
    used_.store(size, std::memory_order_release);
    used_.notify_all();
    // Members that go to rest sleep in a round; they leave it with the next one.
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
}

void ThreadTeam::start(Call call, const void* context) {
    call_ = call;
    context_ = context;
    pending_.store(static_cast<std::uint32_t>(size() - 1), std::memory_order_relaxed);
    const std::uint64_t round = round_.load(std::memory_order_relaxed) + std::uint64_t{1};
    // Part 0 is the owner's.
    next_.store(round << 32 | 1, std::memory_order_release);
    round_.store(static_cast<std::uint32_t>(round), std::memory_order_release);
    round_.notify_all();
}

// Whoever takes a part holds the round open until it is done, so `call_` can't change under it.
void ThreadTeam::take_parts() {
    std::uint64_t next = next_.load(std::memory_order_acquire);
    while ((next & kNoParts) < size()) {
        if (!next_.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel)) continue;
        call_(context_, static_cast<std::size_t>(next & kNoParts));
        pending_.fetch_sub(1, std::memory_order_release);
        next = next_.load(std::memory_order_acquire);
    }
}

void ThreadTeam::wait() {
    for (int spins = 0; pending_.load(std::memory_order_acquire) != 0; ++spins) {
        // A member that was interrupted in the middle of a part may need this processor.
        if (spins < kSpins)
            pause_briefly();
        else
            sched_yield();
    }
}

void ThreadTeam::rest(std::size_t member) {
    for (std::size_t used = size(); used <= member; used = size())
        used_.wait(used, std::memory_order_acquire);
}

std::uint32_t ThreadTeam::await_round(std::uint32_t seen) {
    for (int waits = 0; waits < kSpins + kYields; ++waits) {
        const std::uint32_t round = round_.load(std::memory_order_acquire);
        if (round != seen) return round;
        if (waits < kSpins)
            pause_briefly();
        else if (in_step_.load(std::memory_order_relaxed))
            sched_yield();
        else
            break;
    }
    round_.wait(seen, std::memory_order_acquire);
    return round_.load(std::memory_order_acquire);
}

void ThreadTeam::serve(std::size_t member) {
    std::uint32_t seen = 0;
    for (;;) {
        rest(member);
        seen = await_round(seen);
        if (stopping_.load(std::memory_order_relaxed)) return;
        take_parts();
    }
}

}  // namespace sluice
