#pragma once

// One question to all that hold KV blocks, workers and cache nodes, and what each of them answered. Some
// may be gone: an answer is an error then, and the others count.
//
// Belongs to the event loop's thread.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "discovery/collected_call.h"
#include "gateway/kv_holders.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace sluice::gateway {

struct KvAnswer {
    KvHolder holder;
    Result<std::string> body = std::string();  ///< `kUnsupported` of a foreign one.
};

struct KvQuestion {
    std::string method = "GET";
    std::string path;  ///< "/kv/status"
    std::string body{};
    std::chrono::milliseconds time{5'000};  ///< For each answer.
};

class KvSurvey {
public:
    /// `on_done` is called once, later, with an answer for each holder in their order, unless this is
    /// destroyed before; it may destroy this.
    KvSurvey(net::EventLoop& loop, net::HttpClient& client, std::vector<KvHolder> holders,
             KvQuestion question, std::function<void(std::vector<KvAnswer>)> on_done);
    KvSurvey(const KvSurvey&) = delete;
    KvSurvey& operator=(const KvSurvey&) = delete;

private:
    void go_on();
    void ask(std::size_t index);
    void on_answer(std::size_t index, Result<discovery::CollectedAnswer> answer);

    net::EventLoop& loop_;
    net::HttpClient& client_;
    KvQuestion question_;
    std::function<void(std::vector<KvAnswer>)> on_done_;
    std::vector<KvAnswer> answers_;
    std::map<std::size_t, std::unique_ptr<discovery::CollectedCall>> running_;
    std::size_t next_ = 0;
    net::Timer begin_;
};

}  // namespace sluice::gateway
