#pragma once

// The exchange of a copied request: it has the original's question, and nobody hears its answer.

#include <memory>
#include <utility>

#include "net/http_server.h"

namespace sluice::gateway {

class CopiedExchange final : public net::HttpExchange {
public:
    /// Keeps `original` and with it the request's text, but never answers it.
    explicit CopiedExchange(std::shared_ptr<net::HttpExchange> original)
        : original_(std::move(original)) {}

    [[nodiscard]] const net::HttpRequest& request() const override { return original_->request(); }
    void respond(net::HttpResponse) override {}
    void begin_stream(int, net::HttpHeaders) override {}
    void write(std::string) override {}
    void end_stream() override {}
    void abort() override {}
    void on_client_gone(std::function<void()>) override {}
    [[nodiscard]] std::size_t backlog_bytes() const override { return 0; }

private:
    std::shared_ptr<net::HttpExchange> original_;
};

}  // namespace sluice::gateway
