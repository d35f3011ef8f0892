#pragma once

// An exchange without a socket: it keeps what it is told.

#include <functional>
#include <string>
#include <utility>

#include "net/http_server.h"

namespace sluice::gateway {

class FakeExchange final : public net::HttpExchange {
public:
    explicit FakeExchange(net::HttpRequest request = {}) : request_(std::move(request)) {}

    [[nodiscard]] const net::HttpRequest& request() const override { return request_; }
    void respond(net::HttpResponse response) override {
        status = response.status;
        body = response.body;
        ended = true;
    }
    void begin_stream(int stream_status, net::HttpHeaders stream_headers) override {
        status = stream_status;
        headers = std::move(stream_headers);
    }
    void write(std::string data) override { body += data; }
    void end_stream() override { ended = true; }
    void abort() override { ended = true; }
    void on_client_gone(std::function<void()>) override {}
    [[nodiscard]] std::size_t backlog_bytes() const override { return 0; }

    int status = 0;
    net::HttpHeaders headers;
    std::string body;
    bool ended = false;

private:
    net::HttpRequest request_;
};

}  // namespace sluice::gateway
