#pragma once

// Says it to a gateway: POST /workers at its admin address, three times a lease.

#include <memory>
#include <string>

#include "discovery/announcer.h"
#include "discovery/collected_call.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace sluice::discovery {

class HttpAnnouncer final : public Announcer {
public:
    /// `admin`: "http://127.0.0.1:8081". `key` is an admin's, or empty; never logged.
    HttpAnnouncer(net::EventLoop& loop, net::HttpClient& client, std::string admin, std::string key,
                  Announcement announcement);

    void start() override { announce(); }
    void withdraw(std::function<void()> on_done) override;

private:
    void announce();
    void on_answer(Result<CollectedAnswer> answer);
    [[nodiscard]] net::ClientRequest request(std::string method, const std::string& path) const;

    net::EventLoop& loop_;
    net::HttpClient& client_;
    std::string admin_;
    std::string key_;
    Announcement announcement_;
    std::string name_;     ///< What the gateway calls it; empty until it has said so.
    std::string trouble_;  ///< The last one that was told.
    std::unique_ptr<CollectedCall> call_;
    net::Timer next_;
};

}  // namespace sluice::discovery
