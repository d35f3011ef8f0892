#pragma once

// Which workers the native pools have: those of the command line, those that register themselves, those
// that stand in etcd. What they say of being there goes into discovery::Membership; what follows from it
// is done to the pools.
//
// Belongs to the event loop's thread.

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/etcd_follower.h"
#include "discovery/membership.h"
#include "gateway/native_pool.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace sluice::gateway {

class WorkerDirectory {
public:
    /// `etcd` without endpoints is not asked.
    WorkerDirectory(net::EventLoop& loop, net::HttpClient& client, discovery::EtcdOptions etcd);

    /// Before `start`.
    void add_pool(NativePool& pool) { pools_.emplace(pool.name(), &pool); }
    void add_static(const std::vector<discovery::WorkerEntry>& workers);
    void start();

    /// A worker says that it is there, or somebody says so for it. Its name. Errors: `kNotFound` for a
    /// pool that is not here, `kExhausted` when there are too many.
    [[nodiscard]] Result<std::string> announce(const discovery::WorkerEntry& worker,
                                               std::optional<std::chrono::milliseconds> lease);

    /// By its name: it gets no new request, what runs there goes on elsewhere or ends, and then it is
    /// gone. Errors: `kNotFound`; `kUnsupported` while etcd has it.
    [[nodiscard]] Result<void> withdraw(std::string_view name);

    /// The same, but that it stays on the list, until `on` is false. Error `kNotFound`.
    [[nodiscard]] Result<void> drain(std::string_view name, bool on);

    /// nullopt if there is none of this name.
    [[nodiscard]] std::optional<WorkerView> find(std::string_view name) const;

private:
    [[nodiscard]] NativePool* pool_of(std::string_view worker) const;
    void carry_out(const discovery::Changes& changes);
    void on_etcd(const std::vector<discovery::WorkerEntry>& workers);
    void look_later();

    net::EventLoop& loop_;
    discovery::Membership membership_;
    std::map<std::string, NativePool*, std::less<>> pools_;
    std::unique_ptr<discovery::EtcdFollower> etcd_;
    net::Timer look_;
};

}  // namespace sluice::gateway
