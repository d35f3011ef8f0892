#pragma once

// Asks etcd who the workers are, for as long as it lives; what the answers mean is EtcdView's.
//
// Threads: the loop's.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "discovery/collected_call.h"
#include "discovery/etcd_options.h"
#include "discovery/etcd_view.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace sluice::discovery {

class EtcdFollower {
public:
    using OnSet = std::function<void(const std::vector<WorkerEntry>& workers)>;

    /// `on_set` gets all workers whenever they have changed; the first time also if there are none.
    EtcdFollower(net::EventLoop& loop, net::HttpClient& client, EtcdOptions options, OnSet on_set);

    void start();

    /// Whether it answers, as far as we know.
    [[nodiscard]] bool answers() const { return !view_.silent_since(); }

private:
    void ask();
    void ask_later();
    void on_answer(Result<CollectedAnswer> answer);
    void tell_of_rejected();

    net::EventLoop& loop_;
    net::HttpClient& client_;
    EtcdOptions options_;
    OnSet on_set_;
    EtcdView view_;
    std::size_t endpoint_ = 0;
    std::size_t told_rejected_ = 0;
    std::unique_ptr<CollectedCall> call_;
    net::Timer next_;
};

}  // namespace sluice::discovery
