#include "gateway/answer_writer.h"

#include <string>
#include <utility>

#include "net/sse.h"
#include "protocol/chat_events.h"
#include "protocol/completion_events.h"

namespace sluice::gateway {
namespace {

/// Told to clients that should come again; the queue drains in seconds.
constexpr const char* kRetryAfterSeconds = "1";

// The four shapes differ in how a piece and an end are spelled; the two bases below hold the rest.
class StreamWriter : public AnswerWriter {
public:
    StreamWriter(std::shared_ptr<net::HttpExchange> exchange, net::HttpHeaders headers,
                 bool include_usage)
        : exchange_(std::move(exchange)),
          headers_(std::move(headers)),
          include_usage_(include_usage) {}

    void begin() override {
        if (std::exchange(begun_, true)) return;
        headers_.set("Content-Type", "text/event-stream; charset=utf-8");
        headers_.set("Cache-Control", "no-cache");
        exchange_->begin_stream(200, std::move(headers_));
        if (const std::string event = opening(); !event.empty()) send(event);
    }

    void write(std::span<const Piece> pieces) override {
        for (const Piece& piece : pieces) send(delta(piece));
    }

    void finish(protocol::FinishReason reason, const protocol::Usage& usage) override {
        begin();
        send(closing(reason));
        if (include_usage_) send(usage_event(usage));
        send(protocol::kStreamEnd);
        exchange_->end_stream();
    }

    void fail(const protocol::ApiError& error) override {
        if (!begun_) return respond_error(*exchange_, error, headers_);
        send(protocol::to_json(error));
        exchange_->end_stream();
    }

    void keep_alive() override {
        if (begun_) exchange_->write(net::sse_comment("keep-alive"));
    }

protected:
    [[nodiscard]] virtual std::string opening() = 0;
    [[nodiscard]] virtual std::string delta(const Piece& piece) = 0;
    [[nodiscard]] virtual std::string closing(protocol::FinishReason reason) = 0;
    [[nodiscard]] virtual std::string usage_event(const protocol::Usage& usage) = 0;

private:
    void send(std::string_view data) { exchange_->write(net::sse_event(data)); }

    std::shared_ptr<net::HttpExchange> exchange_;
    net::HttpHeaders headers_;
    bool include_usage_;
    bool begun_ = false;
};

class ChatStreamWriter final : public StreamWriter {
public:
    ChatStreamWriter(std::shared_ptr<net::HttpExchange> exchange, net::HttpHeaders headers,
                     bool include_usage, const protocol::ResponseInfo& info)
        : StreamWriter(std::move(exchange), std::move(headers), include_usage), events_(info) {}

protected:
    std::string opening() override { return events_.role(); }
    std::string delta(const Piece& piece) override {
        return events_.delta(piece.event, piece.logprobs);
    }
    std::string closing(protocol::FinishReason reason) override { return events_.finish(reason); }
    std::string usage_event(const protocol::Usage& usage) override { return events_.usage(usage); }

private:
    protocol::ChatStream events_;
};

class CompletionStreamWriter final : public StreamWriter {
public:
    CompletionStreamWriter(std::shared_ptr<net::HttpExchange> exchange, net::HttpHeaders headers,
                           bool include_usage, const protocol::ResponseInfo& info)
        : StreamWriter(std::move(exchange), std::move(headers), include_usage), events_(info) {}

protected:
    std::string opening() override { return {}; }
    std::string delta(const Piece& piece) override {
        return events_.delta(piece.event.text, piece.logprobs);
    }
    std::string closing(protocol::FinishReason reason) override { return events_.finish(reason); }
    std::string usage_event(const protocol::Usage& usage) override { return events_.usage(usage); }

private:
    protocol::CompletionStream events_;
};

class BodyWriter : public AnswerWriter {
public:
    BodyWriter(std::shared_ptr<net::HttpExchange> exchange, net::HttpHeaders headers)
        : exchange_(std::move(exchange)), headers_(std::move(headers)) {}

    void begin() override {}
    void keep_alive() override {}

    void write(std::span<const Piece> pieces) override {
        for (const Piece& piece : pieces) add(piece);
    }

    void finish(protocol::FinishReason reason, const protocol::Usage& usage) override {
        net::HttpResponse response = net::HttpResponse::json(200, body(reason, usage));
        for (const auto& [name, value] : headers_) response.headers.add(name, value);
        exchange_->respond(std::move(response));
    }

    void fail(const protocol::ApiError& error) override {
        respond_error(*exchange_, error, headers_);
    }

protected:
    virtual void add(const Piece& piece) = 0;
    [[nodiscard]] virtual std::string body(protocol::FinishReason reason,
                                           const protocol::Usage& usage) = 0;

private:
    std::shared_ptr<net::HttpExchange> exchange_;
    net::HttpHeaders headers_;
};

class ChatBodyWriter final : public BodyWriter {
public:
    ChatBodyWriter(std::shared_ptr<net::HttpExchange> exchange, net::HttpHeaders headers,
                   protocol::ResponseInfo info, protocol::Thinking thinking)
        : BodyWriter(std::move(exchange), std::move(headers)), body_(std::move(info), thinking) {}

protected:
    void add(const Piece& piece) override { body_.add(piece.event, piece.logprobs); }
    std::string body(protocol::FinishReason reason, const protocol::Usage& usage) override {
        return body_.finish(reason, usage);
    }

private:
    protocol::ChatBody body_;
};

class CompletionBodyWriter final : public BodyWriter {
public:
    CompletionBodyWriter(std::shared_ptr<net::HttpExchange> exchange, net::HttpHeaders headers,
                         protocol::ResponseInfo info)
        : BodyWriter(std::move(exchange), std::move(headers)), body_(std::move(info)) {}

protected:
    void add(const Piece& piece) override { body_.add(piece.event.text, piece.logprobs); }
    std::string body(protocol::FinishReason reason, const protocol::Usage& usage) override {
        return body_.finish(reason, usage);
    }

private:
    protocol::CompletionBody body_;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_answer_writer(const PreparedRequest& request,
                                                 std::shared_ptr<net::HttpExchange> exchange,
                                                 protocol::ResponseInfo info,
                                                 net::HttpHeaders headers) {
    const bool usage = request.options.include_usage;
    const bool chat = request.endpoint == Endpoint::kChat;
    if (request.options.stream) {
        if (chat)
            return std::make_unique<ChatStreamWriter>(std::move(exchange), std::move(headers),
                                                      usage, info);
        return std::make_unique<CompletionStreamWriter>(std::move(exchange), std::move(headers),
                                                        usage, info);
    }
    if (chat)
        return std::make_unique<ChatBodyWriter>(std::move(exchange), std::move(headers),
                                                std::move(info), request.thinking);
    return std::make_unique<CompletionBodyWriter>(std::move(exchange), std::move(headers),
                                                  std::move(info));
}

void respond_error(net::HttpExchange& exchange, const protocol::ApiError& error,
                   const net::HttpHeaders& headers) {
    net::HttpResponse response =
        net::HttpResponse::json(protocol::http_status(error.code), protocol::to_json(error));
    for (const auto& [name, value] : headers) response.headers.add(name, value);
    if (protocol::wants_retry_after(error.code) && !headers.find("Retry-After"))
        response.headers.set("Retry-After", kRetryAfterSeconds);
    exchange.respond(std::move(response));
}

}  // namespace sluice::gateway
