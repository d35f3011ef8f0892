#pragma once

// Finds a host and connects to it: to each of its addresses in turn, all within one time.
//
// Private to net/.

#include <boost/asio/ip/basic_resolver.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/loop_impl.h"

namespace sluice::net {

class Dialer final : public LoopMember, public std::enable_shared_from_this<Dialer> {
public:
    struct Target {
        std::string host;  ///< A name or a numeric address, without brackets.
        std::uint16_t port = 0;
        std::string name;  ///< As errors name it: "[::1]:8080".
    };

    /// `kUnavailable` or `kTimeout`, with the target's name.
    using Done = std::function<void(Result<Socket>)>;

    Dialer(EventLoop::Impl& loop, Target target, std::chrono::milliseconds time, Done done);

    /// Once. `done` is called once, in a turn, never from inside this.
    void start();
    /// Nothing is called any more.
    void cancel() noexcept;

private:
    using Resolver = asio::ip::basic_resolver<Tcp, Executor>;

    template <class Work>
    static void when_waiting(const std::weak_ptr<Dialer>& weak, Work work);

    void loop_ends() noexcept override { cancel(); }
    void start_timer();
    void resolve();
    void resolved(const SystemError& error, const Resolver::results_type& results);
    void try_next();
    void tried(const SystemError& error);
    void finish(Result<Socket> result);

    const Target target_;
    const std::chrono::milliseconds time_;
    Done done_;  ///< Empty when over.
    std::optional<Resolver> resolver_;
    std::vector<Tcp::endpoint> endpoints_;
    std::size_t next_ = 0;
    std::optional<Socket> socket_;
    std::optional<SteadyTimer> timer_;
};

}  // namespace sluice::net
