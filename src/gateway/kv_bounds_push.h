#pragma once

// Tells all that hold KV blocks what each tenant may take of their memory, as the configuration has it.
// Holders forget it when they end, and come and go: all of them are told again every few seconds. Until
// then, and where nothing was said of a tenant, a holder's own bound counts.
//
// Belongs to the event loop's thread.

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "gateway/kv_holders.h"
#include "gateway/kv_survey.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "port/kv_orders.h"

namespace sluice::gateway {

class KvBoundsPush {
public:
    static constexpr std::chrono::milliseconds kPace{5'000};

    /// `loop` and `client` outlive this, as does what `holders` asks.
    KvBoundsPush(net::EventLoop& loop, net::HttpClient& client,
                 std::function<std::vector<KvHolder>()> holders, const port::KvBoundsOrder& bounds,
                 std::chrono::milliseconds pace = kPace);

private:
    void tell();

    net::EventLoop& loop_;
    net::HttpClient& client_;
    std::function<std::vector<KvHolder>()> holders_;
    const std::string order_;
    const std::chrono::milliseconds pace_;
    std::unique_ptr<KvSurvey> survey_;
    net::Timer next_;
};

}  // namespace sluice::gateway
