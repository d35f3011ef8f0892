#pragma once

// The first question to a service that has just come up: does it answer, and what does that look
// like from outside? Asked as any client asks, over HTTP with streaming.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "net/event_loop.h"

namespace sluice::app {

inline constexpr std::string_view kFirstQuestion = "What is the capital of France?";

struct FirstAnswer {
    std::string model;  ///< The name the service gives it.
    std::string text;
};

class FirstRequest {
public:
    /// `url` is the service's main address. `on_text` gets the answer piece by piece, without
    /// control characters that a terminal would obey.
    FirstRequest(std::string url, std::function<void(std::string_view text)> on_text);

    /// Asks and waits, on the calling thread. Once.
    [[nodiscard]] Result<FirstAnswer> run();

    /// Any thread: `run` returns `kCancelled`, unless it is done.
    void cancel() { loop_.stop(); }

private:
    net::EventLoop loop_;
    std::string url_;
    std::function<void(std::string_view)> on_text_;
};

/// The body of a request that asks `model` the first question.
[[nodiscard]] std::string first_question_body(std::string_view model, bool stream);

/// A line that asks it again when pasted into a shell.
[[nodiscard]] std::string curl_line(std::string_view url, std::string_view model);

/// `text` without control characters but newline and tab.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace sluice::app
