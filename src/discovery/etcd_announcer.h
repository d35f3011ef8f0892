#pragma once

// Says it to etcd: a key below the prefix, on a lease that is kept alive three times as often as it ends.

#include <memory>
#include <string>

#include "discovery/announcer.h"
#include "discovery/collected_call.h"
#include "discovery/etcd_options.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace sluice::discovery {

class EtcdAnnouncer final : public Announcer {
public:
    EtcdAnnouncer(net::EventLoop& loop, net::HttpClient& client, EtcdOptions options,
                  Announcement announcement);

    void start() override { grant(); }
    void withdraw(std::function<void()> on_done) override;

private:
    using OnBody = std::function<void(const std::string& body)>;

    /// POSTs there; what is not answered well begins anew with a lease, on the next endpoint.
    void call(const std::string& path, std::string body, OnBody on_body);
    void grant();
    void put();
    void keep_alive();
    void begin_again(const std::string& why);

    net::EventLoop& loop_;
    net::HttpClient& client_;
    EtcdOptions options_;
    Announcement announcement_;
    std::size_t endpoint_ = 0;
    std::string lease_;  ///< Its id; empty without one.
    bool told_ = false;  ///< Of the trouble that lasts.
    std::unique_ptr<CollectedCall> call_;
    net::Timer next_;
};

}  // namespace sluice::discovery
