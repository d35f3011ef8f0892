#pragma once

// Heads of messages as text. Length and connection fields belong to net/ alone: two voices about
// where a message ends are how requests get smuggled. A field that is not one line of text is
// made one, so that no caller's value can start a second message.

#include <cstdint>
#include <string>
#include <string_view>

#include "net/http_message.h"

namespace sluice::net {

enum class BodyFraming : std::uint8_t {
    kNone,        ///< No body and no length (204, 304).
    kLength,      ///< Content-Length.
    kChunked,     ///< Transfer-Encoding: chunked.
    kUntilClose,  ///< HTTP/1.0: the end of the connection ends the body.
};

enum class AfterAnswer : std::uint8_t {
    kKeepOpen,        ///< HTTP/1.1: nothing to say.
    kKeepOpenHttp10,  ///< An HTTP/1.0 client that asked for keep-alive must be told.
    kClose,
};

struct ResponseHead {
    int status = 200;
    BodyFraming framing = BodyFraming::kLength;
    std::size_t body_bytes = 0;  ///< For `kLength`.
    AfterAnswer after = AfterAnswer::kKeepOpen;
    std::string_view date{};  ///< As `http_date` writes it.
};

[[nodiscard]] std::string response_head(const ResponseHead& head, const HttpHeaders& headers);

/// IMF-fixdate of RFC 9110, section 5.6.7.
[[nodiscard]] std::string http_date(std::int64_t unix_seconds);

/// Appends "Name: value\r\n" for each field that doesn't frame the message. Values are made one
/// line; fields whose name is not a token are left out.
void append_fields(std::string& out, const HttpHeaders& headers);

/// Appends the framing of one chunk before its data; CRLF follows the data.
void append_chunk_size(std::string& out, std::size_t bytes);

}  // namespace sluice::net
