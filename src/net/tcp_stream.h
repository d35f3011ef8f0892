#pragma once

// A TCP connection with bytes on it, plain or within TLS: what protocols other than HTTP are built on.
// `TcpServer` brings a server's ends, `connect_tcp` a client's.
//
// Everything on the loop's thread. No TcpEvents function is called from inside a TcpStream function.

#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/error.h"
#include "net/shared_text.h"

namespace sluice::net {

/// What happens on a connection. Functions may throw; the connection is then broken.
class TcpEvents {
public:
    virtual ~TcpEvents() = default;

    /// A client's connection is there, secure if it is to be. A server's is from the start.
    virtual void on_open() {}

    /// All of `data` is taken; it is gone after the call.
    virtual void on_data(std::string_view data) = 0;

    /// Where the next bytes belong, so that they need not be moved; they come by `on_data` all the
    /// same. Empty for anywhere.
    [[nodiscard]] virtual std::span<char> room() { return {}; }

    /// All output is with the kernel, after some was not; also when it took all at once while input is
    /// paused, so that whoever paused for it can go on.
    virtual void on_sent_all() {}

    /// The time set by `expect_within` is over.
    virtual void on_overdue() {}

    /// The other side sends no more, but may still read.
    virtual void on_end_of_input() = 0;

    /// The connection is gone: not made (`kUnavailable`, `kTimeout`), reset, or cut because the other
    /// side doesn't read. The last call.
    virtual void on_broken(const Error& why) = 0;
};

class TcpStream {
public:
    /// Cuts the connection; nothing is called any more.
    virtual ~TcpStream() = default;

    /// What one pass of the loop writes leaves together. Before `on_open` it waits for that; on a
    /// connection that is over it is dropped.
    virtual void write(std::string_view data) = 0;
    /// The same without a copy, where `data` is large.
    virtual void share(SharedText data) = 0;
    /// Bytes that the kernel doesn't have yet.
    [[nodiscard]] virtual std::size_t backlog_bytes() const = 0;

    /// While paused nothing is read, and the end of the connection is seen only by writing.
    virtual void pause_input() = 0;
    virtual void resume_input() = 0;

    /// `on_overdue` comes after so long, unless the time is set anew or `expect_nothing` is called.
    /// While output waits for the other side the clock stands still.
    virtual void expect_within(std::chrono::milliseconds time) = 0;
    virtual void expect_nothing() = 0;

    /// Reads no more, sends what is left, and ends the connection in order. Nothing is called any
    /// more.
    virtual void close_when_sent() = 0;
    /// Ends the connection with a reset, at once. Nothing is called any more.
    virtual void cut() = 0;
};

}  // namespace sluice::net
