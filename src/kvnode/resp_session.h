#pragma once

// One client of a cache node: reads its requests, and sends the answers in their order, also of those
// that take longer. Reading pauses while much waits to be sent or answered, and goes on when it has been;
// what doesn't become smaller, because the client doesn't read, ends the connection.

#include <deque>
#include <memory>
#include <string>

#include "kv/resp_request_reader.h"
#include "kvnode/resp_call.h"
#include "net/tcp_stream.h"

namespace sluice::kvnode {

class RespSession final : public net::TcpEvents {
public:
    RespSession(NodeService& service, net::TcpStream& stream, std::string peer);
    ~RespSession() override;

    void on_data(std::string_view data) override;
    [[nodiscard]] std::span<char> room() override;
    void on_sent_all() override { go_on(); }
    void on_overdue() override;
    void on_end_of_input() override;
    void on_broken(const Error& why) override;

private:
    class Call;
    struct Answer {
        std::shared_ptr<kv::RespWriter> out;
        bool ready = false;
        bool others_wait = false;
    };
    struct Alive {};

    void consume(std::string_view data);
    void run_request();
    void refuse(std::string_view why);
    void count_input();
    [[nodiscard]] bool must_pause() const;
    void pause(std::string_view rest);
    void go_on();
    [[nodiscard]] RespTicket answer_later(bool others_wait);
    void answered(Answer& answer);
    void send_answers();
    [[nodiscard]] std::uint64_t unread_bytes() const;
    void count_unread();
    /// Whoever has left most unread goes, if all together have left too much.
    void bound_unread();
    void cut();
    void send(kv::RespWriter& out);
    void send_part(kv::RespWriter& out);
    void finish();
    void end();

    NodeService& service_;
    net::TcpStream& stream_;
    NodeClient client_;
    kv::RespRequestReader reader_;
    kv::RespWriter direct_;  ///< Answers that nothing is before.
    std::deque<std::shared_ptr<Answer>> answers_;
    std::size_t ready_bytes_ = 0;  ///< Of answers whose turn has not come.
    std::size_t waits_ = 0;        ///< Answers that hold up what comes after them.
    std::string rest_;             ///< Of the input, while paused.
    std::uint64_t input_counted_ = 0;
    bool known_ = false;  ///< Has said the password, or need not.
    bool paused_ = false;
    bool ending_ = false;  ///< No more is read.
    bool over_ = false;    ///< Nothing is sent any more.
    std::shared_ptr<Alive> alive_ = std::make_shared<Alive>();
};

}  // namespace sluice::kvnode
