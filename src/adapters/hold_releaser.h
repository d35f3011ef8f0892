#pragma once

// Tells prefill workers that what they hold for a hand-over is needed no more: the client left, or the
// decode worker was lost before it had everything. Asked once and told nothing: a hold that is not
// released ends by itself when its time is up.
//
// Threads: the loop's.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "net/http_client.h"
#include "port/generate.h"

namespace sluice::adapters {

class HoldReleaser {
public:
    /// `client` outlives it.
    explicit HoldReleaser(net::HttpClient& client) : client_(client) {}
    HoldReleaser(const HoldReleaser&) = delete;
    HoldReleaser& operator=(const HoldReleaser&) = delete;

    /// Not sent while limits::kKvHolds are under way.
    void release(const port::KvSource& source);

private:
    net::HttpClient& client_;
    std::map<std::uint64_t, std::unique_ptr<net::HttpCall>> calls_;  ///< Under way.
    std::uint64_t next_ = 0;
};

}  // namespace sluice::adapters
