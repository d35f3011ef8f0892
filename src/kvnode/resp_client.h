#pragma once

// One connection to a server that speaks RESP (our node, Redis, Valkey), kept alive by itself.
//
// Requests are pipelined: up to a window of them are under way, the rest waits here. Every request has
// a deadline. One whose answer is late ends the connection, because nobody could tell any more which
// answer belongs to which request; the others that were under way are asked once more, over a new one.
//
// A connection is tried at most once a second. It counts only once the server has let us in and
// answered: one that accepts and then says nothing is no server. While the last try has failed the
// client is down, and every request fails at once.
//
// A closed client calls nobody. Loop thread; may be closed and let go of from anywhere, its callbacks
// too.

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kv/resp_reply.h"
#include "kv/resp_reply_reader.h"
#include "kv/resp_writer.h"
#include "kv/shared_bytes.h"
#include "kvnode/block_store.h"
#include "kvnode/store_url.h"
#include "net/event_loop.h"
#include "net/tcp_client.h"

namespace sluice::kvnode {

struct RespRequest {
    std::vector<std::string> words;
    kv::SharedBytes value{};  ///< Goes behind the second word, if there is one: SET name value NX …
};

class RespClient : public std::enable_shared_from_this<RespClient>, private net::TcpEvents {
public:
    struct Options {
        StoreUrl address;
        std::shared_ptr<const net::TlsTrust> trust{};  ///< For secure addresses.
        std::size_t window = 64;                       ///< Requests under way.
        /// Requests that wait or are under way, and the bytes of their values.
        std::size_t requests_max = 65'536;
        std::size_t value_bytes_max = 256UL * 1024 * 1024;
        std::chrono::milliseconds connect_time{1'000};  ///< Until the first answer.
        std::chrono::milliseconds probe_pause{1'000};   ///< Between two tries.
    };

    /// Error `kTimeout`; `kUnavailable` if there is no connection or it broke twice; `kExhausted` if
    /// too much waits already. What the server calls an error is a reply.
    using OnReply = std::function<void(Result<kv::RespReply>)>;

    static std::shared_ptr<RespClient> make(net::EventLoop& loop, Options options);
    RespClient(net::EventLoop& loop, Options options);  ///< For `make`.
    RespClient(const RespClient&) = delete;
    RespClient& operator=(const RespClient&) = delete;
    ~RespClient() override = default;

    /// Asks; the answer comes later, never from inside the call. If `wanted_by` is gone before the
    /// request has been sent, it isn't sent, and nobody is called.
    void call(RespRequest request, Deadline deadline, OnReply on_reply,
              std::optional<std::weak_ptr<const void>> wanted_by = std::nullopt);

    /// The connection is not to be relied on: an answer made no sense.
    void break_off(std::string why);

    void close();

    /// False after a try that failed: a request would fail at once.
    [[nodiscard]] bool up() const { return state_ != State::kDown; }
    /// What the server calls itself: "redis", "valkey", "sluice"; empty before the first answer.
    [[nodiscard]] const std::string& server() const { return server_; }
    /// Connections made so far, good or not.
    [[nodiscard]] std::uint64_t tries() const { return tries_; }

private:
    enum class State : std::uint8_t {
        kConnecting,  ///< Requests wait for what comes of it.
        kUp,
        kDown,  ///< Between tries, and during one.
        kClosed,
    };

    struct Call {
        RespRequest request;
        Deadline deadline;
        OnReply on_reply;
        std::optional<std::weak_ptr<const void>> wanted_by;
        bool sent_before = false;
    };

    void on_open() override;
    void on_data(std::string_view data) override;
    [[nodiscard]] std::span<char> room() override { return reader_.room(); }
    void on_end_of_input() override;
    void on_broken(const Error& why) override;

    void connect();
    void greet();
    /// False if the server won't have us.
    [[nodiscard]] bool greeted(const kv::RespReply& reply);
    void take(kv::RespReply reply);
    void send_waiting();
    void write(const RespRequest& request);
    void flush();
    /// The connection is over, or there is none.
    void lose(const Error& why);
    void fail(const std::vector<std::pair<Call, Error>>& calls);
    void fail_later(Call call, Error why);
    void forget(const Call& call);
    void watch(Deadline deadline);
    void look_for_late();

    net::EventLoop& loop_;
    const Options options_;
    State state_ = State::kConnecting;
    std::unique_ptr<net::TcpStream> stream_;
    kv::RespReplyReader reader_;
    kv::RespWriter writer_;
    std::size_t greetings_ = 0;  ///< Answers to come before the first request's.
    std::deque<Call> waiting_;
    std::deque<Call> under_way_;
    std::size_t value_bytes_ = 0;
    std::chrono::steady_clock::time_point last_try_{};
    std::uint64_t tries_ = 0;
    std::string server_;
    Deadline watched_ = Deadline::max();
    net::Timer late_timer_;
    net::Timer connect_timer_;  ///< Ends a try, or begins the next one.
};

}  // namespace sluice::kvnode
