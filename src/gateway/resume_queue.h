#pragma once

// Requests that lost their worker and wait for their turn to go on (dispatch/resume_pacer.h), in the
// order in which they lost it.

#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "dispatch/resume_pacer.h"
#include "gateway/gateway_probe.h"
#include "gateway/pool_set.h"
#include "net/event_loop.h"

namespace sluice::gateway {

class Generation;

class ResumeQueue {
public:
    using Turn = dispatch::ResumePacer::Turn;

    ResumeQueue(net::EventLoop& loop, PoolSet& pools, GatewayProbe& probe,
                std::uint64_t tokens_per_worker)
        : loop_(loop), pools_(pools), probe_(probe), pacer_(tokens_per_worker) {}

    /// A turn for `tokens` in `pool`, or nothing: then the request lines up, and is called
    /// (`worker_available`) when its turn has come, which it then gets by asking again.
    [[nodiscard]] std::optional<Turn> ask(Generation& generation, Pool& pool, std::uint64_t tokens);
    /// Ends a turn, and calls those whose turn it is now.
    void end(Turn& turn);
    /// The request is over.
    void forget(const Generation& generation);

private:
    struct Waiting {
        std::weak_ptr<Generation> generation;
        routing::PoolIndex pool = 0;
        std::uint64_t tokens = 0;
    };

    [[nodiscard]] std::optional<Turn> admit(routing::PoolIndex pool, std::uint64_t tokens);
    void call_next();

    net::EventLoop& loop_;
    PoolSet& pools_;
    GatewayProbe& probe_;
    dispatch::ResumePacer pacer_;
    std::deque<Waiting> waiting_;  ///< No more than there are requests.
    std::map<const Generation*, Turn>
        granted_;  ///< To those that were called and have not asked yet.
};

}  // namespace sluice::gateway
