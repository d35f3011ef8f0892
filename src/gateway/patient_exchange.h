#pragma once

// An exchange whose client is not left without a word: a stream that gets no answer for a while gets
// its head, and then a comment now and then, while the request waits in the queue or for its first
// token. Without it proxies and clients give up on a connection that is silent.
//
// Once the head is out its status is 200, whatever comes: an error then is the stream's last event.

#include <chrono>
#include <memory>
#include <string>

#include "net/event_loop.h"
#include "net/http_server.h"

namespace sluice::gateway {

class PatientExchange final : public net::HttpExchange,
                              public std::enable_shared_from_this<PatientExchange> {
public:
    PatientExchange(net::EventLoop& loop, std::shared_ptr<net::HttpExchange> inner)
        : loop_(loop), inner_(std::move(inner)) {}

    /// The answer will be an event stream: `headers` are sent after `patience` unless it has begun.
    void promise_stream(net::HttpHeaders headers, std::chrono::milliseconds patience);

    [[nodiscard]] const net::HttpRequest& request() const override { return inner_->request(); }
    void respond(net::HttpResponse response) override;
    void begin_stream(int status, net::HttpHeaders headers) override;
    void write(std::string data) override;
    void end_stream() override;
    void abort() override {
        answer_begun_ = true;
        timer_.cancel();
        inner_->abort();
    }
    void on_client_gone(std::function<void()> work) override {
        inner_->on_client_gone(std::move(work));
    }
    [[nodiscard]] std::size_t backlog_bytes() const override { return inner_->backlog_bytes(); }

private:
    void say_something();
    void say_later(std::chrono::milliseconds pause);

    net::EventLoop& loop_;
    std::shared_ptr<net::HttpExchange> inner_;
    net::HttpHeaders headers_;
    net::Timer timer_;
    bool head_sent_ = false;  ///< By us, before the answer.
    bool answer_begun_ = false;
    bool failed_late_ = false;  ///< The answer is an error, and its status came too late.
    std::string late_error_;
};

}  // namespace sluice::gateway
