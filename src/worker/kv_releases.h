#pragma once

// Tells sources that what they hold is no longer needed. Nobody waits for the answer: a message that
// is lost costs the source its memory until the hold's time is up.
//
// Everything on the loop's thread.

#include <memory>
#include <string>
#include <unordered_map>

#include "net/http_client.h"

namespace sluice::worker {

class KvReleases {
public:
    explicit KvReleases(net::HttpClient& client) : client_(client) {}

    /// Not sent while limits::kKvHolds are under way.
    void send(const std::string& url, const std::string& hold);

    /// Messages under way.
    [[nodiscard]] std::size_t size() const { return calls_.size(); }

private:
    net::HttpClient& client_;
    std::uint64_t count_ = 0;
    std::unordered_map<std::uint64_t, std::unique_ptr<net::HttpCall>> calls_;
};

}  // namespace sluice::worker
