#pragma once

// One client's connection: reads requests one after the other, hands each to the handler, and sends
// its answer. Every exchange has a serial number; what an exchange of the past still says is
// ignored.
//
// Private to net/.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "net/http_head.h"
#include "net/http_server.h"
#include "net/request_reader.h"
#include "net/tcp_endpoint.h"

namespace sluice::net {

class ServerConnection;

/// What a server's connections share.
class ServerCore {
public:
    ServerCore(HttpServerOptions options, HttpHandler handler);
    virtual ~ServerCore() = default;

    [[nodiscard]] HttpResponse error_answer(int status, std::string_view message) const;
    /// The present second as a Date field has it.
    [[nodiscard]] std::string_view date();
    /// The connection has closed itself.
    virtual void forget(ServerConnection& connection) = 0;

    const HttpServerOptions options;
    const HttpHandler handler;
    bool draining = false;

private:
    std::int64_t date_second_ = -1;
    std::string date_;
};

class ServerConnection final : public TcpEndpoint {
public:
    ServerConnection(EventLoop::Impl& loop, Socket socket, std::shared_ptr<ServerCore> core,
                     std::string peer);

    void start();
    void close_if_idle();
    /// Closes without a word to anybody.
    void cut() noexcept;

    // The exchange's side. Each does nothing if `serial` is not the present exchange's.
    void respond(std::uint64_t serial, HttpResponse response);
    void begin_stream(std::uint64_t serial, int status, const HttpHeaders& headers);
    void write(std::uint64_t serial, std::string data);
    void end_stream(std::uint64_t serial);
    void abort(std::uint64_t serial);
    void on_client_gone(std::uint64_t serial, std::function<void()> work);
    [[nodiscard]] std::size_t backlog_bytes(std::uint64_t serial) const;
    void exchange_dropped(std::uint64_t serial);

private:
    enum class Stage : std::uint8_t {
        kReading,    ///< Between requests, or within one.
        kRunning,    ///< The handler has the request and has not answered.
        kStreaming,  ///< The head of the answer is out.
        kFinishing,  ///< The answer is complete here, but not yet in the kernel.
        kLingering,  ///< Refused: waits for the client to see why.
        kClosed,
    };

    void on_input(std::string_view data) override;
    void on_input_end(const SystemError& error) override;
    void on_output(Output state) override;
    void on_output_error(const SystemError& error) override;
    void on_deadline() override;
    void on_failure() noexcept override;
    void on_secured() override { set_deadline(core_->options.idle_time); }
    void on_not_secured(const SystemError& /*error*/) override { cut(); }
    void on_loop_end() noexcept override;
    [[nodiscard]] std::size_t input_room() const override;

    [[nodiscard]] bool is_present(std::uint64_t serial, Stage stage) const;
    void advance(RequestReader::Status status);
    void watch_request_time();
    void dispatch();
    void refuse(int status, std::string_view message);
    void finish_answer();
    void next_request();
    void linger();
    /// The client is gone with the answer incomplete.
    void lose_client() noexcept;
    /// It is there, but doesn't read.
    void lose_slow_client() noexcept;
    [[nodiscard]] ResponseHead head_of(int status);

    const std::shared_ptr<ServerCore> core_;
    RequestReader reader_;
    std::string peer_;
    std::function<void()> gone_work_;
    std::uint64_t serial_ = 0;
    std::uint64_t gone_serial_ = 0;  ///< The exchange whose client left; 0 if none.
    std::size_t linger_bytes_ = 0;
    Stage stage_ = Stage::kReading;
    RequestReader::Phase timed_phase_ = RequestReader::Phase::kIdle;
    BodyFraming framing_ = BodyFraming::kLength;
    bool head_only_ = false;    ///< HEAD: the answer has no body.
    bool close_after_ = false;  ///< The answer says that the connection ends with it.
    bool refused_ = false;      ///< The client may still be sending what nobody will read.
    bool input_ended_ = false;
    bool output_blocked_ = false;
};

}  // namespace sluice::net
