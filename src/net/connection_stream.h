#pragma once

// A TcpStream that is a StreamConnection, whoever began it: an accepted or a dialed one. For the sources
// of this folder only.

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "net/stream_connection.h"
#include "net/tcp_stream.h"

namespace sluice::net {

class ConnectionStream : public TcpStream {
public:
    /// `over`: as StreamConnection has it; may be null.
    ConnectionStream(EventLoop::Impl& loop, StreamConnection::Options options,
                     std::function<void()> over)
        : connection_(
              std::make_shared<StreamConnection>(loop, std::move(options), std::move(over))) {}
    ~ConnectionStream() override { connection_->cut(); }

    void write(std::string_view data) override { connection_->write(data); }
    void share(SharedText data) override { connection_->share(std::move(data)); }
    [[nodiscard]] std::size_t backlog_bytes() const override {
        return connection_->backlog_bytes();
    }
    void pause_input() override { connection_->pause_input(); }
    void resume_input() override { connection_->resume_input(); }
    void expect_within(std::chrono::milliseconds time) override {
        connection_->expect_within(time);
    }
    void expect_nothing() override { connection_->expect_nothing(); }
    void close_when_sent() override { connection_->close_when_sent(); }
    void cut() override { connection_->cut(); }

protected:
    [[nodiscard]] const std::shared_ptr<StreamConnection>& connection() const {
        return connection_;
    }

private:
    const std::shared_ptr<StreamConnection> connection_;
};

}  // namespace sluice::net
