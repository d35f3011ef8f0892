#include "kvnode/resp_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "kvnode/resp_commands.h"

namespace sluice::kvnode {
namespace {

/// No further request is looked at while so much waits for the client to read it, or for the SSD.
constexpr std::size_t kPauseBytes = 8 * 1024 * 1024;
/// A request that is not complete may have so much, whatever all others have.
constexpr std::uint64_t kSmallInput = 64 * 1024;

/// Requests that are not complete, of all clients together: half of what values may take, and at least
/// what a client may send beside a value.
std::uint64_t input_bound(const NodeService& service) {
    return std::max<std::uint64_t>(service.store.dram().options().bytes / 2,
                                   limits::kKvNodeInputBytes);
}

/// Until a client has said the password.
constexpr std::chrono::seconds kPasswordTime{limits::kKvNodeStallSeconds};

constexpr kv::RespBounds kBounds{
    .elements = limits::kRespItems,
    .text_bytes = limits::kKvValueBytes,
    .total_bytes = limits::kKvValueBytes + limits::kKvNodeInputBytes,
    .line_bytes = limits::kRespInlineBytes,
    .depth = limits::kRespDepth,
};
/// Whoever has not said the password can't make us hold much.
constexpr kv::RespBounds kStrangersBounds{
    .elements = 16,
    .text_bytes = 4 * 1024,
    .total_bytes = 16 * 1024,
    .line_bytes = 4 * 1024,
    .depth = 1,
};

}  // namespace

class RespSession::Call final : public RespCall {
public:
    Call(RespSession& session, std::vector<kv::RespText>& words, kv::RespWriter& out)
        : RespCall(session.service_, session.client_, words, out), session_(session) {}

    [[nodiscard]] RespTicket later(Others others) override {
        deferred = true;
        return session_.answer_later(others == Others::kWait);
    }

    bool deferred = false;

private:
    RespSession& session_;
};

RespSession::RespSession(NodeService& service, net::TcpStream& stream, std::string peer)
    : service_(service), stream_(stream) {
    client_.id = ++service_.clients_total;
    client_.peer = std::move(peer);
    client_.since = std::chrono::steady_clock::now();
    client_.authenticated = known_ = !service_.password;
    client_.count_unread = [this] {
        count_unread();
        return client_.unread_bytes;
    };
    client_.cut = [this] { cut(); };
    service_.clients.emplace(client_.id, &client_);
    reader_.set_bounds(client_.authenticated ? kBounds : kStrangersBounds);
    if (!client_.authenticated) stream_.expect_within(kPasswordTime);
}

RespSession::~RespSession() { end(); }

// A connection that is over may be taken down after the node itself: this is the last that it does there.
void RespSession::end() {
    if (std::exchange(over_, true)) return;
    service_.clients.erase(client_.id);
    service_.input_bytes -= input_counted_;
    service_.unread_bytes -= client_.unread_bytes;
}

// ---- Requests -------------------------------------------------------------------------------------

void RespSession::on_data(std::string_view data) {
    if (over_ || ending_) return;
    consume(data);
}

std::span<char> RespSession::room() {
    return over_ || ending_ || paused_ ? std::span<char>() : reader_.room();
}

void RespSession::consume(std::string_view data) {
    while (!over_ && !ending_ && !data.empty()) {
        if (must_pause()) {
            pause(data);
            break;
        }
        const auto status = reader_.read(data);
        if (status == kv::RespRequestReader::Status::kError) {
            refuse("ERR Protocol error: " + std::string(reader_.error().message()));
            break;
        }
        if (status == kv::RespRequestReader::Status::kRequest) run_request();
    }
    count_input();
    send_answers();
}

void RespSession::count_input() {
    if (over_) return;
    const std::uint64_t held = reader_.held_bytes() + rest_.size();
    service_.input_bytes += held - input_counted_;
    input_counted_ = held;
    const std::uint64_t bound = input_bound(service_);
    if (service_.input_bytes > bound && held > kSmallInput) {
        refuse(
            fmt::format("OOM requests that have not come whole would take {} bytes, and all "
                        "clients together may have {}",
                        service_.input_bytes, bound));
    }
}

void RespSession::run_request() {
    std::vector<kv::RespText> words = reader_.take();
    std::shared_ptr<Answer> turn;
    if (!answers_.empty()) {
        turn = std::make_shared<Answer>();
        turn->out = std::make_shared<kv::RespWriter>();
        turn->out->set_version(direct_.version());
    }
    Call call(*this, words, turn ? *turn->out : direct_);
    run_command(call);
    if (turn && !call.deferred) {
        direct_.set_version(turn->out->version());
        answers_.push_back(turn);
        answered(*turn);
    }
    if (client_.authenticated && !known_) {
        known_ = true;
        reader_.set_bounds(kBounds);
        stream_.expect_nothing();
    }
    if (client_.quitting || client_.fault != NodeClient::Fault::kNone) ending_ = true;
}

void RespSession::refuse(std::string_view why) {
    if (over_ || ending_) return;
    ++service_.clients_cut;
    kv::RespWriter last;
    last.error(why);
    const auto turn = std::make_shared<Answer>();
    turn->out = std::make_shared<kv::RespWriter>(std::move(last));
    answers_.push_back(turn);
    answered(*turn);
    ending_ = true;
}

bool RespSession::must_pause() const {
    return waits_ > 0 || answers_.size() >= limits::kKvNodePipeline ||
           stream_.backlog_bytes() + direct_.bytes() + ready_bytes_ + client_.fetching.used() >
               kPauseBytes;
}

void RespSession::pause(std::string_view rest) {
    std::string kept(rest);  // It may lie in what it replaces.
    rest_ = std::move(kept);
    if (!paused_) stream_.pause_input();
    paused_ = true;
}

void RespSession::go_on() {
    if (over_ || !paused_ || must_pause()) return;
    paused_ = false;
    const std::string rest = std::exchange(rest_, {});
    consume(rest);
    if (!paused_ && !over_ && !ending_) stream_.resume_input();
}

void RespSession::on_end_of_input() {
    ending_ = true;
    send_answers();
}

void RespSession::on_broken(const Error& why) {
    end();
    if (why.code() == ErrorCode::kTimeout) {
        ++service_.clients_cut;
        log::info("{}", why.message());
    }
}

void RespSession::on_overdue() {
    refuse("NOAUTH nobody said the password in time");
    send_answers();
}

// ---- Answers --------------------------------------------------------------------------------------

RespTicket RespSession::answer_later(bool others_wait) {
    auto answer = std::make_shared<Answer>();
    answer->out = std::make_shared<kv::RespWriter>();
    answer->out->set_version(direct_.version());
    answer->others_wait = others_wait;
    if (others_wait) ++waits_;
    answers_.push_back(answer);
    return {answer->out, [this, answer, alive = std::weak_ptr(alive_)] {
                if (alive.expired() || over_) return;
                if (answer->others_wait) --waits_;
                answered(*answer);
                send_answers();
                go_on();
            }};
}

void RespSession::answered(Answer& answer) {
    answer.ready = true;
    ready_bytes_ += answer.out->bytes();
}

void RespSession::send_answers() {
    if (over_) return;
    send(direct_);
    while (!over_ && !answers_.empty() && answers_.front()->ready) {
        const auto answer = answers_.front();
        answers_.pop_front();
        ready_bytes_ -= answer->out->bytes();
        send(*answer->out);
    }
    if (over_) return;
    if (unread_bytes() > limits::kKvNodeOutputBytes) return cut();
    if (ending_ && answers_.empty()) return finish();
    bound_unread();
}

std::uint64_t RespSession::unread_bytes() const { return stream_.backlog_bytes() + ready_bytes_; }

void RespSession::count_unread() {
    const std::uint64_t unread = unread_bytes();
    service_.unread_bytes += unread - client_.unread_bytes;
    client_.unread_bytes = unread;
}

void RespSession::bound_unread() {
    count_unread();
    if (service_.unread_bytes <= service_.unread_most) return;
    // What others have read meanwhile is not known yet.
    NodeClient* slowest = &client_;
    for (const auto& [id, client] : service_.clients)
        if (client->count_unread() > slowest->unread_bytes) slowest = client;
    if (service_.unread_bytes > service_.unread_most) slowest->cut();
}

void RespSession::cut() {
    ++service_.clients_cut;
    log::warn("{} doesn't read what it asked for", client_.peer);
    end();
    stream_.cut();
}

void RespSession::send(kv::RespWriter& out) {
    if (out.empty()) return;
    if (client_.fault != NodeClient::Fault::kNone) return send_part(out);
    out.drain([this](std::string_view text) { stream_.write(text); },
              [this](kv::SharedBytes shared) {
                  stream_.share({.text = shared.bytes, .owner = std::move(shared.owner)});
              });
}

// Planted faults: half of it, and then the end, or nothing any more.
void RespSession::send_part(kv::RespWriter& out) {
    std::string text;
    out.drain([&](std::string_view part) { text += part; },
              [&](const kv::SharedBytes& part) { text += part.bytes; });
    stream_.write(std::string_view(text).substr(0, text.size() / 2));
    end();
    if (client_.fault == NodeClient::Fault::kCut) stream_.close_when_sent();
}

void RespSession::finish() {
    end();
    stream_.close_when_sent();
}

}  // namespace sluice::kvnode
