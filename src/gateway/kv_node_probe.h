#pragma once

// Whether somebody answers at a cache node's addresses: for who has just added it, and would otherwise
// hear of a slip of the pen in a worker's log.
//
// Belongs to the event loop's thread.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "discovery/collected_call.h"
#include "gateway/kv_members.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "net/tcp_client.h"

namespace sluice::gateway {

class KvNodeProbe final : private net::TcpEvents {
public:
    static constexpr std::chrono::milliseconds kTime{2'000};

    /// `on_done` is called once, later, with an address and what went wrong there for each where
    /// nobody answers, unless this is destroyed before; it may destroy this. `node` is a good one.
    KvNodeProbe(net::EventLoop& loop, net::HttpClient& client, const KvNode& node,
                std::function<void(std::vector<std::string>)> on_done);
    KvNodeProbe(const KvNodeProbe&) = delete;
    KvNodeProbe& operator=(const KvNodeProbe&) = delete;
    ~KvNodeProbe() override = default;

private:
    void on_open() override;
    void on_data(std::string_view /*data*/) override {}
    void on_end_of_input() override {}
    void on_broken(const Error& why) override;

    void connect(net::EventLoop& loop);
    void ask_http(net::EventLoop& loop, net::HttpClient& client);
    void end_one();

    const KvNode node_;
    std::function<void(std::vector<std::string>)> on_done_;
    std::vector<std::string> unreachable_;
    std::size_t open_ = 0;
    std::unique_ptr<net::TcpStream> stream_;
    std::unique_ptr<discovery::CollectedCall> call_;
};

}  // namespace sluice::gateway
