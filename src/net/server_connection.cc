#include "net/server_connection.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/assert.h"

namespace sluice::net {
namespace {

class Exchange final : public HttpExchange {
public:
    Exchange(std::shared_ptr<ServerConnection> connection, std::weak_ptr<EventLoop::Impl> loop,
             std::uint64_t serial, HttpRequest request)
        : connection_(std::move(connection)),
          loop_(std::move(loop)),
          serial_(serial),
          request_(std::move(request)) {}

    ~Exchange() override {
        const auto loop = loop_.lock();
        if (loop == nullptr) return;
        loop->guarded([&] {
            if (loop->in_loop_thread()) return connection_->exchange_dropped(serial_);
            loop->post([connection = std::move(connection_), serial = serial_] {
                connection->exchange_dropped(serial);
            });
        });
    }

    [[nodiscard]] const HttpRequest& request() const override { return request_; }

    // Each call holds the connection itself: what it calls may destroy this exchange.
    void respond(HttpResponse response) override {
        connection()->respond(serial_, std::move(response));
    }
    void begin_stream(int status, HttpHeaders headers) override {
        connection()->begin_stream(serial_, status, headers);
    }
    void write(std::string data) override { connection()->write(serial_, std::move(data)); }
    void end_stream() override { connection()->end_stream(serial_); }
    void abort() override { connection()->abort(serial_); }
    void on_client_gone(std::function<void()> work) override {
        connection()->on_client_gone(serial_, std::move(work));
    }
    [[nodiscard]] std::size_t backlog_bytes() const override {
        return connection()->backlog_bytes(serial_);
    }

private:
    [[nodiscard]] std::shared_ptr<ServerConnection> connection() const {
        const auto loop = loop_.lock();
        SLUICE_ASSERT(loop == nullptr || loop->in_loop_thread());
        return connection_;
    }

    std::shared_ptr<ServerConnection> connection_;
    std::weak_ptr<EventLoop::Impl> loop_;
    std::uint64_t serial_;
    HttpRequest request_;
};

std::string json_string(std::string_view text) {
    constexpr std::string_view kHex = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte >= 0x7f) {
            out.append("\\u00").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
            continue;
        }
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out += '"';
}

HttpResponse openai_error(int status, std::string_view message) {
    std::string_view code = "invalid_request";
    if (status == 413) code = "payload_too_large";
    if (status >= 500) code = "internal";
    const std::string_view type = status >= 500 ? "server_error" : "invalid_request_error";
    std::string body = R"({"error":{"message":)";
    body.append(json_string(message)).append(R"(,"type":)").append(json_string(type));
    body.append(R"(,"param":null,"code":)").append(json_string(code)).append("}}");
    return HttpResponse::json(status, std::move(body));
}

bool has_no_body(int status) { return status / 100 == 1 || status == 204 || status == 304; }

}  // namespace

ServerCore::ServerCore(HttpServerOptions server_options, HttpHandler server_handler)
    : options(std::move(server_options)), handler(std::move(server_handler)) {}

HttpResponse ServerCore::error_answer(int status, std::string_view message) const {
    return options.error_body ? options.error_body(status, message) : openai_error(status, message);
}

std::string_view ServerCore::date() {
    const auto now = static_cast<std::int64_t>(std::time(nullptr));
    if (std::exchange(date_second_, now) != now) date_ = http_date(now);
    return date_;
}

ServerConnection::ServerConnection(EventLoop::Impl& loop, Socket socket,
                                   std::shared_ptr<ServerCore> core, std::string peer)
    : TcpEndpoint(loop, std::move(socket)),
      core_(std::move(core)),
      reader_(
          {.header_bytes = core_->options.header_bytes, .body_bytes = core_->options.body_bytes}),
      peer_(std::move(peer)) {}

void ServerConnection::start() {
    set_no_delay();
    if (core_->options.tls) {
        set_deadline(core_->options.handshake_time);
        return secure(core_->options.tls->open(socket().native_handle()));
    }
    set_deadline(core_->options.idle_time);
    watch_input();
}

void ServerConnection::close_if_idle() {
    const bool idle = stage_ == Stage::kReading && reader_.kept_bytes() == 0 &&
                      reader_.phase() == RequestReader::Phase::kIdle;
    if (idle) cut();
}

void ServerConnection::cut() noexcept {
    if (std::exchange(stage_, Stage::kClosed) == Stage::kClosed) return;
    // Dropped last: it may own the exchange, and through it this connection.
    const auto dropped = std::exchange(gone_work_, nullptr);
    close();
    core_->forget(*this);
}

std::size_t ServerConnection::input_room() const {
    if (input_ended_ || stage_ == Stage::kClosed) return 0;
    if (stage_ == Stage::kReading || stage_ == Stage::kLingering) return SIZE_MAX;
    return limits::kPipelinedBytes - std::min(reader_.kept_bytes(), limits::kPipelinedBytes);
}

void ServerConnection::on_input(std::string_view data) {
    switch (stage_) {
        case Stage::kReading: return advance(reader_.feed(data));
        case Stage::kRunning:
        case Stage::kStreaming:
        case Stage::kFinishing: return reader_.keep(data);
        case Stage::kLingering:
            linger_bytes_ += data.size();
            if (linger_bytes_ > limits::kLingerBytes) cut();
            return;
        case Stage::kClosed: return;
    }
}

void ServerConnection::advance(RequestReader::Status status) {
    switch (status) {
        case RequestReader::Status::kComplete: return dispatch();
        case RequestReader::Status::kFailed: {
            const RequestReader::Failure failure = reader_.failure();
            return refuse(failure.status, failure.message);
        }
        case RequestReader::Status::kNeedMore: return watch_request_time();
    }
}

void ServerConnection::watch_request_time() {
    if (reader_.take_continue()) {
        output_.add("HTTP/1.1 100 Continue\r\n\r\n");
        flush_later();
    }
    const RequestReader::Phase phase = reader_.phase();
    if (std::exchange(timed_phase_, phase) == phase) return;
    if (phase == RequestReader::Phase::kHeader) set_deadline(core_->options.header_time);
    if (phase == RequestReader::Phase::kBody) set_deadline(core_->options.body_time);
}

void ServerConnection::dispatch() {
    stage_ = Stage::kRunning;
    timed_phase_ = RequestReader::Phase::kIdle;
    clear_deadline();
    const std::uint64_t serial = ++serial_;
    HttpRequest request = reader_.take_request();
    request.peer = peer_;
    head_only_ = request.method == "HEAD";
    close_after_ = !reader_.keep_alive();
    const auto self = std::static_pointer_cast<ServerConnection>(shared_from_this());
    try {
        core_->handler(
            std::make_shared<Exchange>(self, loop()->weak_from_this(), serial, std::move(request)));
    } catch (const std::exception& error) {
        EventLoop::Impl::report(error.what());
        exchange_dropped(serial);
    } catch (...) {
        EventLoop::Impl::report("an unknown exception");
        exchange_dropped(serial);
    }
}

bool ServerConnection::is_present(std::uint64_t serial, Stage stage) const {
    return serial == serial_ && stage == stage_ && is_open();
}

ResponseHead ServerConnection::head_of(int status) {
    close_after_ = close_after_ || core_->draining;
    ResponseHead head{.status = status, .date = core_->date()};
    if (close_after_) {
        head.after = AfterAnswer::kClose;
    } else if (reader_.is_http10()) {
        head.after = AfterAnswer::kKeepOpenHttp10;
    }
    return head;
}

void ServerConnection::respond(std::uint64_t serial, HttpResponse response) {
    if (!is_present(serial, Stage::kRunning)) return;
    const auto dropped = std::exchange(gone_work_, nullptr);
    stage_ = Stage::kFinishing;
    ResponseHead head = head_of(response.status);
    head.framing = has_no_body(response.status) ? BodyFraming::kNone : BodyFraming::kLength;
    head.body_bytes = response.body.size();
    output_.add(response_head(head, response.headers));
    if (head.framing == BodyFraming::kLength && !head_only_)
        output_.move_in(std::move(response.body));
    flush_later();
}

void ServerConnection::begin_stream(std::uint64_t serial, int status, const HttpHeaders& headers) {
    if (!is_present(serial, Stage::kRunning)) return;
    stage_ = Stage::kStreaming;
    framing_ = BodyFraming::kChunked;
    if (has_no_body(status)) framing_ = BodyFraming::kNone;
    if (framing_ == BodyFraming::kChunked && reader_.is_http10()) {
        framing_ = BodyFraming::kUntilClose;
        close_after_ = true;
    }
    ResponseHead head = head_of(status);
    head.framing = framing_;
    output_.add(response_head(head, headers));
    flush_later();
}

void ServerConnection::write(std::uint64_t serial, std::string data) {
    if (!is_present(serial, Stage::kStreaming)) return;
    if (data.empty() || head_only_ || framing_ == BodyFraming::kNone) return;
    if (framing_ == BodyFraming::kChunked) {
        std::string size;
        append_chunk_size(size, data.size());
        output_.add(std::string_view(size));
        output_.move_in(std::move(data));
        output_.add("\r\n");
    } else {
        output_.move_in(std::move(data));
    }
    flush_later();
    if (output_.bytes() <= core_->options.stream_backlog_bytes) return;
    flush();  // Only what the kernel doesn't take counts against the reader.
    if (output_.bytes() > core_->options.stream_backlog_bytes) lose_slow_client();
}

void ServerConnection::end_stream(std::uint64_t serial) {
    if (!is_present(serial, Stage::kStreaming)) return;
    const auto dropped = std::exchange(gone_work_, nullptr);
    if (framing_ == BodyFraming::kChunked && !head_only_) output_.add("0\r\n\r\n");
    stage_ = Stage::kFinishing;
    flush_later();
}

void ServerConnection::abort(std::uint64_t serial) {
    if (is_present(serial, Stage::kRunning)) return cut();
    if (!is_present(serial, Stage::kStreaming)) return;
    flush();  // What was written before goes out as far as it can.
    // An orderly end would look like the end of such a body.
    if (framing_ == BodyFraming::kUntilClose) close_with_reset();
    cut();
}

void ServerConnection::on_client_gone(std::uint64_t serial, std::function<void()> work) {
    if (!work || loop() == nullptr) return;
    if (serial == gone_serial_) return loop()->post(std::move(work));
    if (!is_present(serial, Stage::kRunning) && !is_present(serial, Stage::kStreaming)) return;
    if (!gone_work_) {
        gone_work_ = std::move(work);
        return;
    }
    gone_work_ = [first = std::move(gone_work_), second = std::move(work)] {
        first();
        second();
    };
}

std::size_t ServerConnection::backlog_bytes(std::uint64_t serial) const {
    return serial == serial_ ? output_.bytes() : 0;
}

void ServerConnection::exchange_dropped(std::uint64_t serial) {
    if (is_present(serial, Stage::kStreaming)) return abort(serial);
    if (!is_present(serial, Stage::kRunning)) return;
    respond(serial, core_->error_answer(500, "the request was dropped without an answer"));
}

void ServerConnection::refuse(int status, std::string_view message) {
    ++serial_;
    stage_ = Stage::kRunning;
    close_after_ = true;
    refused_ = true;
    head_only_ = false;
    clear_deadline();
    respond(serial_, core_->error_answer(status, message));
}

void ServerConnection::on_output(Output state) {
    if (stage_ == Stage::kReading || stage_ == Stage::kLingering) return;
    if (state != Output::kDrained) {
        const bool first = !std::exchange(output_blocked_, true);
        if (first || state == Output::kProgress) set_deadline(core_->options.write_stall);
        return;
    }
    output_blocked_ = false;
    clear_deadline();
    if (stage_ == Stage::kFinishing) finish_answer();
}

void ServerConnection::finish_answer() {
    if (input_ended_) return cut();
    if (!close_after_ && !core_->draining) return next_request();
    // Closing on unread input resets the connection, and the reset may overtake the answer.
    if (refused_ || reader_.kept_bytes() > 0) return linger();
    cut();
}

void ServerConnection::next_request() {
    stage_ = Stage::kReading;
    timed_phase_ = RequestReader::Phase::kIdle;
    set_deadline(core_->options.idle_time);
    watch_input();
    if (reader_.kept_bytes() == 0) return;
    // In a turn of its own: one client's pipeline must not keep the others waiting.
    const auto self = std::static_pointer_cast<ServerConnection>(shared_from_this());
    loop()->post([self] {
        if (self->stage_ != Stage::kReading || self->reader_.kept_bytes() == 0) return;
        self->contained([&] { self->advance(self->reader_.resume()); });
    });
}

void ServerConnection::linger() {
    stage_ = Stage::kLingering;
    shut_down_output();
    set_deadline(std::chrono::seconds(limits::kLingerSeconds));
    watch_input();
}

void ServerConnection::on_input_end(const SystemError& error) {
    switch (stage_) {
        case Stage::kRunning:
        case Stage::kStreaming: return lose_client();
        case Stage::kFinishing:
            input_ended_ = true;
            if (error != asio::error::eof) cut();
            return;
        case Stage::kReading:
        case Stage::kLingering: return cut();
        case Stage::kClosed: return;
    }
}

void ServerConnection::on_output_error(const SystemError& /*error*/) { lose_client(); }

void ServerConnection::on_deadline() {
    if (stage_ != Stage::kReading) return lose_slow_client();
    switch (reader_.phase()) {
        case RequestReader::Phase::kIdle: return cut();
        case RequestReader::Phase::kHeader:
            return refuse(408, "the header of the request did not arrive in time");
        case RequestReader::Phase::kBody:
            return refuse(408, "the body of the request did not arrive in time");
    }
}

void ServerConnection::lose_client() noexcept {
    if (stage_ == Stage::kRunning || stage_ == Stage::kStreaming) gone_serial_ = serial_;
    auto work = std::exchange(gone_work_, nullptr);
    EventLoop::Impl* const home = loop();
    cut();
    if (work && home != nullptr) home->guarded([&] { home->post(std::move(work)); });
}

void ServerConnection::lose_slow_client() noexcept {
    close_with_reset();  // Else the kernel keeps what the client doesn't take for minutes more.
    lose_client();
}

void ServerConnection::on_failure() noexcept { lose_client(); }

void ServerConnection::on_loop_end() noexcept {
    stage_ = Stage::kClosed;
    const auto dropped = std::exchange(gone_work_, nullptr);
}

}  // namespace sluice::net
