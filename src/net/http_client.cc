#include "net/http_client.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/net_limits.h"
#include "net/ascii.h"
#include "net/client_connection.h"
#include "net/dialer.h"
#include "net/http_head.h"
#include "net/response_reader.h"
#include "net/url.h"

namespace sluice::net {
namespace {

std::size_t body_bytes(const ClientRequest& request) {
    std::size_t bytes = request.body.size();
    for (const SharedText& piece : request.shared_body) bytes += piece.text.size();
    return bytes;
}

std::string request_head(const ClientRequest& request, const Url& url) {
    std::string out;
    out.reserve(256);
    out.append(request.method).append(" ").append(url.target).append(" HTTP/1.1\r\n");
    if (!request.headers.find("host")) out.append("Host: ").append(url.authority).append("\r\n");
    append_fields(out, request.headers);
    const std::size_t bytes = body_bytes(request);
    const bool has_length = bytes > 0 || request.method == "POST" || request.method == "PUT" ||
                            request.method == "PATCH";
    if (has_length) out += "Content-Length: " + std::to_string(bytes) + "\r\n";
    return out += "\r\n";
}

/// A running call. Owned by its handle; everything else refers to it weakly.
class Call final : public LoopMember,
                   public ConnectionUser,
                   public std::enable_shared_from_this<Call> {
public:
    Call(EventLoop::Impl& loop, std::shared_ptr<ConnectionPool> pool, ClientRequest request,
         ClientEvents events)
        : LoopMember(loop),
          pool_(std::move(pool)),
          request_(std::move(request)),
          events_(std::move(events)),
          idempotent_(request_.repeatable || request_.method == "GET" ||
                      request_.method == "HEAD") {}

    void start() {
        auto url = parse_url(request_.url);
        if (!url) return fail_later(url.error());
        if (!is_token(request_.method)) {
            return fail_later(Error::invalid("the method is not a token", "method"));
        }
        url_ = std::move(*url);
        origin_ = (url_.secure ? "https://" : "http://") + url_.authority;
        connection_ = pool_->take(origin_);
        if (connection_ == nullptr) return open_connection();
        reused_ = true;
        connection_->serve(weak_from_this());
        send_request();
    }

    void finish_unheard() {
        if (phase_ != Phase::kBody) return cancel();
        unheard_ = true;
        connection_->set_time(std::chrono::milliseconds(limits::kUnheardMilliseconds));
        connection_->own_user(shared_from_this());
    }

    /// Nothing is called from now on.
    void cancel() noexcept {
        phase_ = Phase::kOver;
        if (const auto dialer = std::exchange(dialer_, nullptr)) dialer->cancel();
        if (const auto connection = std::exchange(connection_, nullptr)) connection->drop();
    }

private:
    enum class Phase : std::uint8_t { kConnecting, kHead, kBody, kOver };

    void loop_ends() noexcept override { cancel(); }

    /// Runs `work` in a turn, if the call is still waiting for it.
    template <class Work>
    static void when_running(const std::weak_ptr<Call>& weak, Work work) {
        const auto self = weak.lock();
        if (self == nullptr || self->phase_ == Phase::kOver || self->loop() == nullptr) return;
        EventLoop::Impl& home = *self->loop();
        const Turn turn(home);
        home.guarded([&] { work(*self); });
    }

    void fail_later(Error error) {
        loop()->post([weak = weak_from_this(), error = std::move(error)] {
            when_running(weak, [&](Call& self) { self.fail(error); });
        });
    }

    void open_connection() {
        reused_ = false;
        if (url_.secure) {
            auto trust = pool_->trust();
            if (!trust) return fail_later(trust.error());
            trust_ = *std::move(trust);
        }
        connect_by_ = Clock::now() + connect_time();
        dialer_ = std::make_shared<Dialer>(
            *loop(), Dialer::Target{.host = url_.host, .port = url_.port, .name = url_.authority},
            request_.connect_time, [weak = weak_from_this()](Result<Socket> socket) {
                if (const auto self = weak.lock()) self->dialed(std::move(socket));
            });
        dialer_->start();
    }

    [[nodiscard]] std::chrono::milliseconds connect_time() const {
        return std::min<std::chrono::milliseconds>(request_.connect_time, std::chrono::hours(24));
    }

    void dialed(Result<Socket> socket) {
        dialer_ = nullptr;
        if (!socket) return fail(socket.error());
        connection_ = std::make_shared<ClientConnection>(*loop(), *std::move(socket), origin_);
        // What is left of the time is the handshake's.
        connection_->set_time(
            std::chrono::ceil<std::chrono::milliseconds>(connect_by_ - Clock::now()));
        connection_->begin(weak_from_this(), url_.host, trust_.get());
    }

    void connected() override { send_request(); }

    void not_secured(const SystemError& error) override {
        connection_ = nullptr;
        fail({ErrorCode::kUnavailable,
              "no secure connection to " + url_.authority + ": " + error.message()});
    }

    void send_request() {
        phase_ = Phase::kHead;
        reader_.emplace(request_.method == "HEAD" ? ResponseReader::Expect::kHeadOnly
                                                  : ResponseReader::Expect::kBody);
        connection_->set_time(request_.head_time);
        // Kept for a second attempt, where one is allowed: those requests have small bodies.
        const bool may_repeat = reused_ && idempotent_;
        std::string head = request_head(request_, url_);
        std::string body = may_repeat ? request_.body : std::move(request_.body);
        auto shared = may_repeat ? request_.shared_body : std::move(request_.shared_body);
        connection_->send(head, std::move(body), std::move(shared));
    }

    void input(std::string_view data) override {
        reader_->feed(data);
        while (phase_ != Phase::kOver) {
            if (!take(reader_->next())) return;
        }
    }

    void input_ended(const SystemError& error) override {
        if (reused_ && idempotent_ && !reader_->started()) {
            // The server had closed the waiting connection; nobody has seen the request.
            connection_->drop();
            phase_ = Phase::kConnecting;
            return open_connection();
        }
        if (error == asio::error::eof) {
            take(reader_->end_of_input());
            return;
        }
        fail({ErrorCode::kUnavailable,
              "the connection to " + url_.authority + " broke: " + error.message()});
    }

    /// False if nothing more is to be read for now.
    bool take(ResponseReader::Step step) {
        switch (step) {
            case ResponseReader::Step::kNeedMore: return false;
            case ResponseReader::Step::kHead:
                phase_ = Phase::kBody;
                connection_->set_time(request_.stall_time);
                if (events_.on_head) events_.on_head(reader_->status(), reader_->headers());
                return true;
            case ResponseReader::Step::kData:
                if (unheard_) return true;
                connection_->set_time(request_.stall_time);
                if (events_.on_data) events_.on_data(reader_->data());
                return true;
            case ResponseReader::Step::kDone: finish(); return false;
            case ResponseReader::Step::kFailed: fail(reader_->error()); return false;
        }
        return false;
    }

    void finish() {
        const auto connection = std::exchange(connection_, nullptr);
        phase_ = Phase::kOver;
        if (reader_->reusable() && connection->sent_all()) {
            connection->rest_in(pool_);
        } else {
            connection->drop();
        }
        const ClientEvents events = std::move(events_);
        if (events.on_done && !unheard_) events.on_done();
    }

    void fail(const Error& error) {
        cancel();
        const ClientEvents events = std::move(events_);
        if (events.on_error && !unheard_) events.on_error(error);
    }

    void deadline_passed() override {
        switch (phase_) {
            case Phase::kConnecting:
                return fail({ErrorCode::kTimeout, "no connection to " + url_.authority +
                                                      " within " + text(request_.connect_time)});
            case Phase::kHead:
                return fail({ErrorCode::kTimeout, "no answer from " + url_.authority + " within " +
                                                      text(request_.head_time)});
            case Phase::kBody:
                return fail({ErrorCode::kTimeout, "the answer of " + url_.authority +
                                                      " stood still for " +
                                                      text(request_.stall_time)});
            case Phase::kOver: return;
        }
    }

    void failed() override {
        if (phase_ == Phase::kOver) return;
        fail({ErrorCode::kInternal, "a handler of the answer failed"});
    }

    static std::string text(std::chrono::milliseconds time) {
        return std::to_string(time.count()) + " ms";
    }

    const std::shared_ptr<ConnectionPool> pool_;
    ClientRequest request_;
    ClientEvents events_;
    Url url_;
    std::string origin_;
    std::shared_ptr<const TlsTrust> trust_;  ///< Null for plain http.
    std::shared_ptr<ClientConnection> connection_;
    std::optional<ResponseReader> reader_;
    std::shared_ptr<Dialer> dialer_;
    Clock::time_point connect_by_;
    Phase phase_ = Phase::kConnecting;
    bool idempotent_ = false;
    bool reused_ = false;
    bool unheard_ = false;
};

class CallHandle final : public HttpCall {
public:
    explicit CallHandle(std::shared_ptr<Call> call) : call_(std::move(call)) {}
    ~CallHandle() override {
        if (call_ != nullptr) call_->cancel();
    }
    void finish_unheard() override {
        if (const auto call = std::exchange(call_, nullptr)) call->finish_unheard();
    }

private:
    std::shared_ptr<Call> call_;
};

}  // namespace

struct HttpClient::Impl {
    Impl(EventLoop::Impl& loop, Options options)
        : pool(std::make_shared<ConnectionPool>(loop, std::move(options))) {}

    std::shared_ptr<ConnectionPool> pool;
};

HttpClient::HttpClient(EventLoop& loop) : HttpClient(loop, Options{}) {}
HttpClient::HttpClient(EventLoop& loop, Options options)
    : impl_(std::make_shared<Impl>(loop.impl(), std::move(options))) {}

HttpClient::~HttpClient() { impl_->pool->shut(); }

std::unique_ptr<HttpCall> HttpClient::start(ClientRequest request, ClientEvents events) {
    EventLoop::Impl* loop = impl_->pool->loop();
    if (loop == nullptr) return std::make_unique<CallHandle>(nullptr);
    SLUICE_ASSERT(loop->in_loop_thread());
    auto call = std::make_shared<Call>(*loop, impl_->pool, std::move(request), std::move(events));
    call->start();
    return std::make_unique<CallHandle>(std::move(call));
}

}  // namespace sluice::net
