#pragma once

// One thread that owns sockets and timers. Everything in net/ belongs to one loop and is touched
// only from its thread; `post` is the one door from other threads. While no thread is inside `run`,
// any one thread counts as the loop's: objects are built before and torn down after it.
//
// Order of destruction is free. Timers, servers, clients, calls and exchanges that outlive their
// loop hold no socket any more: their methods do nothing, their callbacks are not called.

#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>

namespace sluice::net {

class EventLoop;

/// A pending call. Ends with its scope: destroyed or cancelled before its time, it never fires.
class Timer {
public:
    Timer() = default;
    Timer(Timer&&) noexcept;
    Timer& operator=(Timer&&) noexcept;
    ~Timer();

    void cancel();

private:
    friend class EventLoop;
    struct State;
    explicit Timer(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

class EventLoop {
public:
    EventLoop();
    ~EventLoop();
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;

    /// Runs handlers on the calling thread until `stop`.
    void run();

    /// The same for at most `duration`; may be called again. For tools that wait for one thing.
    void run_for(std::chrono::nanoseconds duration);

    /// Any thread, any number of times, before `run` too. Handlers that have not run yet are
    /// dropped; a stopped loop stays stopped.
    void stop();

    /// Any thread: runs `work` on the loop's thread, in the order of posting.
    void post(std::function<void()> work);

    /// Loop thread: calls `work` once after `delay`. `work` may destroy its own Timer.
    [[nodiscard]] Timer call_after(std::chrono::nanoseconds delay, std::function<void()> work);

    /// Loop thread: calls `work` for each arrival of one of `signals` while the loop lives.
    void on_signal(std::initializer_list<int> signals, std::function<void(int)> work);

    [[nodiscard]] bool in_loop_thread() const;

    /// The Asio context behind it. Only net/ may see what it is.
    struct Impl;
    [[nodiscard]] Impl& impl() { return *impl_; }

private:
    std::shared_ptr<Impl> impl_;
};

}  // namespace sluice::net
