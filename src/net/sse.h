#pragma once

// Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/limits.h"

namespace sluice::net {

/// One event as it goes out: optional name, then one `data:` line per line of `data`. CR and CRLF
/// end lines too, so a receiver gets them as LF.
[[nodiscard]] std::string sse_event(std::string_view data, std::string_view name = {});

/// A comment, ignored by every client; keeps the connection alive.
[[nodiscard]] std::string sse_comment(std::string_view text);

/// Cuts a byte stream into events, whatever the chunking: LF, CRLF and CR, with or without a space
/// after the colon, characters split over chunks, a byte-order mark at the start.
class SseParser {
public:
    struct Event {
        std::string name;  ///< Empty if none was given.
        std::string data;
    };

    /// Calls `on_event` for each event completed by `chunk`.
    /// Error `kExhausted` once an event or a line grows past `limits::kSseEventBytes`; from then
    /// on every call fails. An event that the stream's end cuts short is never reported.
    [[nodiscard]] Result<void> feed(std::string_view chunk,
                                    const std::function<void(const Event&)>& on_event);

private:
    Result<void> take_line(std::string_view line,
                           const std::function<void(const Event&)>& on_event);
    Result<void> take_data(std::string_view value);
    Result<void> fail();

    std::string line_;
    Event event_;
    bool has_data_ = false;
    bool after_cr_ = false;
    bool at_start_ = true;
    bool failed_ = false;
};

}  // namespace sluice::net
