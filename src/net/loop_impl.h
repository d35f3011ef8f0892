#pragma once

// What stands behind EventLoop: Asio's context, and the notion of a turn. Only net/'s own files
// include this.
//
// A turn is one call of the loop into our code: a socket became ready, a timer fired, posted work
// runs. What it posts runs at its end; what that posts in its turn has to wait for the others.
//
// A pass is all turns that one look at the kernel brought. What they hand to connections leaves when
// the pass ends, in one kernel write a connection: many events that one read brought cost one write,
// and a peer of many connections is woken once for all of them.

#define BOOST_ASIO_NO_DEPRECATED

#include <atomic>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "net/event_loop.h"

namespace sluice::net {

namespace asio = boost::asio;

using SystemError = boost::system::error_code;
using Executor = asio::io_context::executor_type;
using Tcp = asio::ip::tcp;
using Clock = std::chrono::steady_clock;
// The concrete executor type: smaller and faster than Asio's type-erased default.
using Socket = asio::basic_stream_socket<Tcp, Executor>;
using Acceptor = asio::basic_socket_acceptor<Tcp, Executor>;
using SteadyTimer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor>;

/// Something that holds parts of Asio and therefore must let go of them when the loop ends.
class LoopMember {
public:
    LoopMember(const LoopMember&) = delete;
    LoopMember& operator=(const LoopMember&) = delete;

protected:
    explicit LoopMember(EventLoop::Impl& loop);
    virtual ~LoopMember();

    /// Null once the loop is gone.
    [[nodiscard]] EventLoop::Impl* loop() const { return loop_; }

    /// Called by the loop's destructor: destroy every socket and timer, call nobody.
    virtual void loop_ends() noexcept = 0;

private:
    friend struct EventLoop::Impl;
    void leave();

    EventLoop::Impl* loop_;
    LoopMember* previous_ = nullptr;
    LoopMember* next_ = nullptr;
};

/// Wants to be called when the present pass ends.
class PassEnd {
public:
    virtual void end_of_pass() noexcept = 0;

protected:
    ~PassEnd() = default;
};

struct EventLoop::Impl : std::enable_shared_from_this<EventLoop::Impl> {
    static constexpr std::size_t kScratchBytes = 64 * 1024;

    Impl();

    /// Any thread.
    void post(std::function<void()> work);
    void stop();
    [[nodiscard]] bool in_loop_thread() const;

    /// Loop thread: `member` is called when the present pass ends, or soon if there is none.
    void at_end_of_pass(std::shared_ptr<PassEnd> member);

    /// Detaches every member and drops all posted work.
    void shut_down() noexcept;

    /// Calls `work`; an exception is reported and ends there.
    template <class Work>
    void guarded(Work&& work) noexcept {
        try {
            std::forward<Work>(work)();
        } catch (const std::exception& error) {
            report(error.what());
        } catch (...) {
            report("an unknown exception");
        }
    }
    static void report(const char* what) noexcept;

    void run_posted() noexcept;
    void finish_turn() noexcept;
    void finish_pass() noexcept;

    // Declared before the context, because what its destructor drops may still reach them.
    std::mutex mutex;
    std::vector<std::function<void()>> posted;  // guarded by mutex
    bool wake_pending = false;                  // guarded by mutex: a turn for them is on its way
    std::atomic<bool> stopped = false;
    std::atomic<std::thread::id> thread;
    int turn_depth = 0;
    bool turn_takes_posts = false;  ///< What is posted now runs when the turn ends.
    bool turn_has_posts = false;
    std::vector<std::shared_ptr<PassEnd>> pass_end;
    LoopMember* members = nullptr;
    /// Where every socket of this loop reads to: no connection owns a read buffer.
    std::vector<char> scratch;

    asio::io_context context{1};
    asio::executor_work_guard<Executor> work;
    std::list<asio::signal_set> signals;
};

/// Marks a turn for as long as it lives. Turns nest; the outermost one ends the turn.
class Turn {
public:
    explicit Turn(EventLoop::Impl& loop) : loop_(loop) {
        if (loop_.turn_depth++ == 0) loop_.turn_takes_posts = true;
    }
    ~Turn() {
        if (loop_.turn_depth == 1) loop_.finish_turn();
        --loop_.turn_depth;
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

private:
    EventLoop::Impl& loop_;
};

}  // namespace sluice::net
