#pragma once

// Turns the bytes of one server connection into requests, whatever the pieces they come in. It
// knows no socket and no clock, so that it can be fuzzed. Everything a client can make grow here
// (header, number of fields, body, chunk framing, bytes of later requests) has a limit; whatever
// could be understood in two ways (two lengths, folded fields, unknown codings) is refused.
//
// Private to net/.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/http_message.h"

namespace sluice::net {

class RequestReader {
public:
    struct Limits {
        std::size_t header_bytes;
        std::size_t body_bytes;
    };
    enum class Status : std::uint8_t { kNeedMore, kComplete, kFailed };
    enum class Phase : std::uint8_t { kIdle, kHeader, kBody };

    /// How a request can't be served: the status to answer with, and a sentence for its sender.
    struct Failure {
        int status = 400;
        std::string message;
    };

    explicit RequestReader(Limits limits);
    ~RequestReader();
    RequestReader(const RequestReader&) = delete;
    RequestReader& operator=(const RequestReader&) = delete;

    /// Reads on with `data`. On `kComplete` take the request; what came behind it is kept. After
    /// `kFailed` the reader is of no more use.
    [[nodiscard]] Status feed(std::string_view data);

    /// Keeps bytes that came while the last request is still being answered.
    void keep(std::string_view data) { kept_ += data; }
    [[nodiscard]] std::size_t kept_bytes() const { return kept_.size(); }

    /// Reads on with what is kept.
    [[nodiscard]] Status resume() { return feed({}); }

    /// What is there of the next request.
    [[nodiscard]] Phase phase() const;

    /// The header asks for "100 Continue" and no byte of the body is there. True once a request.
    [[nodiscard]] bool take_continue();

    // After kComplete.
    [[nodiscard]] HttpRequest take_request();
    [[nodiscard]] bool keep_alive() const { return keep_alive_; }
    [[nodiscard]] bool is_http10() const { return http10_; }

    // After kFailed.
    [[nodiscard]] const Failure& failure() const { return failure_; }

private:
    class Parser;

    Status advance(std::string_view data, std::size_t& used);
    Status step(std::string_view rest, std::size_t& used);
    Status check_header_step(std::string_view consumed, std::size_t unread);
    Status check_framing(std::size_t consumed, std::size_t pending);
    Status fail(int status, std::string_view message);
    Status complete();
    void skip_empty_lines(std::string_view data, std::size_t& used);

    Limits limits_;
    std::unique_ptr<Parser> parser_;  ///< Lives while a request is being read.
    std::string kept_;
    std::size_t header_bytes_ = 0;
    std::size_t body_wire_bytes_ = 0;
    char last_header_byte_ = 0;
    bool continue_pending_ = false;
    bool keep_alive_ = false;
    bool http10_ = false;
    HttpRequest request_;
    Failure failure_;
};

/// Splits a request target into the decoded path and the raw query. False for malformed escapes,
/// control characters, and targets that are neither a path, an http URL nor "*".
[[nodiscard]] bool split_target(std::string_view target, std::string& path, std::string& query);

}  // namespace sluice::net
