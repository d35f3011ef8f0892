#include "app/first_request.h"

#include <fmt/core.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <optional>
#include <utility>

#include "net/http_client.h"
#include "net/sse.h"

namespace sluice::app {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

constexpr int kHttpOk = 200;
constexpr int kAnswerTokens = 64;
/// Of an answer that is no stream; more of it is not read.
constexpr std::size_t kBodyBytes = 1024 * 1024;
/// A large model on a small machine takes its time for the first token.
constexpr milliseconds kPatience{300'000};

json::value parse(std::string_view text) {
    boost::system::error_code error;
    json::value value = json::parse(text, error);
    return error ? json::value() : value;
}

/// The text at `path` ("/data/0/id"), or nothing.
std::optional<std::string> text_at(const json::value& value, std::string_view path) {
    boost::system::error_code error;
    const json::value* const found = value.find_pointer(path, error);
    if (found == nullptr || !found->is_string()) return std::nullopt;
    return std::string(found->get_string());
}

Error bad_status(int status, std::string_view body) {
    const auto message = text_at(parse(body), "/error/message");
    return {ErrorCode::kUnavailable,
            fmt::format("status {}{}{}", status, message ? ": " : "", message.value_or(""))};
}

/// The two calls of one first request, one after the other.
class Asking {
public:
    Asking(net::EventLoop& loop, const std::string& url,
           const std::function<void(std::string_view)>& on_text)
        : loop_(loop), client_(loop), url_(url), on_text_(on_text) {}

    void ask_for_model() {
        call({.url = url_ + "/v1/models"}, [this] {
            const auto model = text_at(parse(body_), "/data/0/id");
            if (status_ != kHttpOk) return end(std::unexpected(bad_status(status_, body_)));
            if (!model) return end(std::unexpected(Error::invalid("names no model")));
            answer_.model = *model;
            ask();
        });
    }

    Result<FirstAnswer> outcome =
        std::unexpected(Error(ErrorCode::kCancelled, "was interrupted", "first request"));

private:
    void ask() {
        streaming_ = true;
        call({.method = "POST",
              .url = url_ + "/v1/chat/completions",
              .headers = {{"Content-Type", "application/json"}},
              .body = first_question_body(answer_.model, true),
              .head_time = kPatience,
              .stall_time = kPatience},
             [this] {
                 if (status_ != kHttpOk) return end(std::unexpected(bad_status(status_, body_)));
                 end(std::unexpected(Error(ErrorCode::kUnavailable, "the stream was cut short")));
             });
    }

    void call(net::ClientRequest request, std::function<void()> on_done) {
        const std::string path = request.url.substr(url_.size());
        place_ = path;
        body_.clear();
        call_ = client_.start(
            std::move(request),
            {.on_head = [this](int status, const net::HttpHeaders&) { status_ = status; },
             .on_data = [this](std::string_view data) { take(data); },
             .on_done = std::move(on_done),
             .on_error = [this](const Error& error) { end(std::unexpected(error)); }});
    }

    void take(std::string_view data) {
        if (!streaming_ || status_ != kHttpOk) {
            body_ += data.substr(0, kBodyBytes - body_.size());
            return;
        }
        const auto fed = events_.feed(
            data, [this](const net::SseParser::Event& event) { take_event(event.data); });
        if (!fed) end(std::unexpected(fed.error()));
    }

    void take_event(std::string_view data) {
        if (ended_) return;
        if (data == "[DONE]") return end(answer_);
        const json::value chunk = parse(data);
        if (const auto message = text_at(chunk, "/error/message")) {
            return end(std::unexpected(Error(ErrorCode::kUnavailable, *message)));
        }
        const auto text = text_at(chunk, "/choices/0/delta/content");
        if (!text || text->empty()) return;
        answer_.text += *text;
        on_text_(printable(*text));
    }

    void end(Result<FirstAnswer> result) {
        if (std::exchange(ended_, true)) return;
        outcome = std::move(result);
        if (!outcome) outcome = std::unexpected(outcome.error().within(place_));
        loop_.stop();
    }

    net::EventLoop& loop_;
    net::HttpClient client_;
    std::unique_ptr<net::HttpCall> call_;
    const std::string& url_;
    const std::function<void(std::string_view)>& on_text_;
    std::string place_;
    FirstAnswer answer_;
    std::string body_;
    net::SseParser events_;
    int status_ = 0;
    bool streaming_ = false;
    bool ended_ = false;
};

}  // namespace

FirstRequest::FirstRequest(std::string url, std::function<void(std::string_view)> on_text)
    : url_(std::move(url)), on_text_(std::move(on_text)) {}

Result<FirstAnswer> FirstRequest::run() {
    Asking asking(loop_, url_, on_text_);
    asking.ask_for_model();
    loop_.run();
    return std::move(asking.outcome);
}

std::string first_question_body(std::string_view model, bool stream) {
    json::object body{{"model", model},
                      {"messages", json::array{{{"role", "user"}, {"content", kFirstQuestion}}}},
                      {"temperature", 0}};
    if (stream) {
        body["max_tokens"] = kAnswerTokens;
        body["stream"] = true;
    }
    return json::serialize(body);
}

std::string curl_line(std::string_view url, std::string_view model) {
    std::string body;
    for (const char c : first_question_body(model, false)) {
        if (c == '\'') {
            body += R"('\'')";
        } else {
            body += c;
        }
    }
    return fmt::format("curl {}/v1/chat/completions -H 'Content-Type: application/json' -d '{}'",
                       url, body);
}

std::string printable(std::string_view text) {
    std::string clean;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '\n' || c == '\t' || (byte >= 0x20 && byte != 0x7F)) clean += c;
    }
    return clean;
}

}  // namespace sluice::app
