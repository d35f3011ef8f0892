#include "kvnode/resp_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/limits.h"
#include "base/log.h"

namespace sluice::kvnode {
namespace {

using Clock = std::chrono::steady_clock;

/// Longest reply: a value with what is around it.
constexpr kv::RespBounds kBounds{.elements = 65'536,
                                 .text_bytes = limits::kKvBlockBytes + 4'096,
                                 .total_bytes = limits::kKvBlockBytes + 1024UL * 1024,
                                 .depth = limits::kRespDepth};

Error unavailable(std::string message) { return {ErrorCode::kUnavailable, std::move(message)}; }
Error late(const std::string& name) {
    return {ErrorCode::kTimeout, fmt::format("{} did not answer in time", name)};
}

}  // namespace

std::shared_ptr<RespClient> RespClient::make(net::EventLoop& loop, Options options) {
    auto client = std::make_shared<RespClient>(loop, std::move(options));
    client->connect();
    return client;
}

RespClient::RespClient(net::EventLoop& loop, Options options)
    : loop_(loop), options_(std::move(options)), reader_(kBounds) {}

void RespClient::call(RespRequest request, Deadline deadline, OnReply on_reply,
                      std::optional<std::weak_ptr<const void>> wanted_by) {
    Call call{.request = std::move(request),
              .deadline = deadline,
              .on_reply = std::move(on_reply),
              .wanted_by = std::move(wanted_by)};
    if (state_ == State::kClosed) return;
    if (state_ == State::kDown)
        return fail_later(std::move(call),
                          unavailable(fmt::format("{} is down", options_.address.name())));
    // Asked for all the same, its late answer would cost the connection.
    if (deadline <= Clock::now()) return fail_later(std::move(call), late(options_.address.name()));
    const std::size_t bytes = call.request.value.bytes.size();
    if (waiting_.size() + under_way_.size() >= options_.requests_max ||
        value_bytes_ + bytes > options_.value_bytes_max) {
        return fail_later(
            std::move(call),
            {ErrorCode::kExhausted, fmt::format("too much waits for {}", options_.address.name())});
    }
    value_bytes_ += bytes;
    waiting_.push_back(std::move(call));
    watch(deadline);
    send_waiting();
}

void RespClient::fail_later(Call call, Error why) {
    loop_.post(
        [weak = weak_from_this(), on_reply = std::move(call.on_reply), why = std::move(why)] {
            const auto self = weak.lock();
            if (self != nullptr && self->state_ != State::kClosed) on_reply(std::unexpected(why));
        });
}

void RespClient::connect() {
    last_try_ = Clock::now();
    ++tries_;
    reader_ = kv::RespReplyReader(kBounds);
    greetings_ = 0;
    stream_ = net::connect_tcp(loop_,
                               {.host = options_.address.host,
                                .port = options_.address.port,
                                .trust = options_.trust,
                                .connect_time = options_.connect_time},
                               *this);
    connect_timer_ = loop_.call_after(options_.connect_time, [this] {
        const auto self = shared_from_this();
        lose(late(options_.address.name()));
    });
}

void RespClient::on_open() { greet(); }

void RespClient::greet() {
    const StoreUrl& address = options_.address;
    if (!address.password.empty()) {
        if (address.user.empty()) {
            writer_.command({"AUTH", address.password});
        } else {
            writer_.command({"AUTH", address.user, address.password});
        }
        ++greetings_;
    }
    writer_.command({"HELLO", "2"});
    ++greetings_;
    flush();
}

bool RespClient::greeted(const kv::RespReply& reply) {
    // What AUTH answers tells less than whether HELLO is answered then: a server without a password
    // refuses one and lets us in, a server of before version 6 knows no HELLO.
    if (--greetings_ > 0) return true;
    if (reply.is_error() && !reply.text.view().starts_with("ERR unknown command")) {
        lose(unavailable(fmt::format("{} does not let us in: {}", options_.address.name(),
                                     reply.text.view().substr(0, 128))));
        return false;
    }
    for (std::size_t i = 0; i + 1 < reply.elements.size(); i += 2) {
        if (reply.elements[i].text.view() == "server")
            server_ = reply.elements[i + 1].text.view().substr(0, 64);
    }
    if (state_ == State::kDown) log::info("{} is back", options_.address.name());
    state_ = State::kUp;
    connect_timer_.cancel();
    return true;
}

void RespClient::on_data(std::string_view data) {
    const auto self = shared_from_this();
    const std::uint64_t connection = tries_;
    while (stream_ != nullptr && tries_ == connection) {
        const auto status = reader_.read(data);
        if (status == kv::RespReplyReader::Status::kMore) break;
        if (status == kv::RespReplyReader::Status::kError) {
            return lose(unavailable(fmt::format(
                "{} does not speak RESP: {}", options_.address.name(), reader_.error().message())));
        }
        take(reader_.take());
    }
    send_waiting();
}

void RespClient::take(kv::RespReply reply) {
    if (reply.type == kv::RespType::kPush) return;
    if (greetings_ > 0) return static_cast<void>(greeted(reply));
    if (under_way_.empty()) {
        return lose(
            unavailable(fmt::format("{} answered what nobody had asked", options_.address.name())));
    }
    const Call call = std::move(under_way_.front());
    under_way_.pop_front();
    forget(call);
    call.on_reply(std::move(reply));
}

void RespClient::forget(const Call& call) { value_bytes_ -= call.request.value.bytes.size(); }

void RespClient::send_waiting() {
    if (state_ != State::kUp || stream_ == nullptr) return;
    const auto now = Clock::now();
    while (!waiting_.empty() && under_way_.size() < options_.window) {
        Call call = std::move(waiting_.front());
        waiting_.pop_front();
        if (call.wanted_by && call.wanted_by->expired()) {
            forget(call);
            continue;
        }
        if (call.deadline <= now) {
            forget(call);
            fail_later(std::move(call), late(options_.address.name()));
            continue;
        }
        write(call.request);
        under_way_.push_back(std::move(call));
    }
    flush();
}

void RespClient::write(const RespRequest& request) {
    const bool has_value = static_cast<bool>(request.value);
    writer_.array(request.words.size() + (has_value ? 1 : 0));
    for (std::size_t i = 0; i < request.words.size(); ++i) {
        writer_.text(request.words[i]);
        if (has_value && i == 1) writer_.text(request.value);
    }
}

void RespClient::flush() {
    writer_.drain([this](std::string_view text) { stream_->write(text); },
                  [this](kv::SharedBytes bytes) {
                      stream_->share({.text = bytes.bytes, .owner = std::move(bytes.owner)});
                  });
}

void RespClient::on_end_of_input() {
    const auto self = shared_from_this();
    lose(unavailable(fmt::format("{} ended the connection", options_.address.name())));
}

void RespClient::on_broken(const Error& why) {
    const auto self = shared_from_this();
    lose(why);
}

void RespClient::break_off(std::string why) {
    const auto self = shared_from_this();
    if (stream_ != nullptr) lose(unavailable(std::move(why)));
}

void RespClient::lose(const Error& why) {
    stream_.reset();
    const auto now = Clock::now();
    const auto next_try = std::max(now, last_try_ + options_.probe_pause);
    std::vector<std::pair<Call, Error>> failed;
    // From the last to the first, so that those that are asked again keep their order.
    for (; !under_way_.empty(); under_way_.pop_back()) {
        Call& call = under_way_.back();
        if (call.deadline <= now) {
            failed.emplace_back(std::move(call), late(options_.address.name()));
        } else if (std::exchange(call.sent_before, true)) {
            failed.emplace_back(std::move(call), why);
        } else {
            waiting_.push_front(std::move(call));
        }
    }
    if (state_ == State::kUp && next_try == now) {
        state_ = State::kConnecting;
        connect();
    } else {
        if (state_ != State::kDown)
            log::warn("{}: its blocks are missing until it is back", why.message());
        state_ = State::kDown;
        for (; !waiting_.empty(); waiting_.pop_front())
            failed.emplace_back(std::move(waiting_.front()), why);
        connect_timer_ = loop_.call_after(next_try - now, [this] { connect(); });
    }
    fail(failed);
}

void RespClient::fail(const std::vector<std::pair<Call, Error>>& calls) {
    for (const auto& [call, why] : calls) forget(call);
    for (const auto& [call, why] : calls) {
        if (state_ == State::kClosed) return;
        call.on_reply(std::unexpected(why));
    }
}

void RespClient::watch(Deadline deadline) {
    if (deadline >= watched_) return;
    watched_ = deadline;
    late_timer_ = loop_.call_after(deadline - Clock::now(), [this] { look_for_late(); });
}

void RespClient::look_for_late() {
    const auto self = shared_from_this();
    const auto now = Clock::now();
    const auto is_late = [now](const Call& call) { return call.deadline <= now; };
    watched_ = Deadline::max();
    std::vector<std::pair<Call, Error>> failed;
    for (const Call& call : waiting_)
        if (is_late(call)) failed.emplace_back(call, late(options_.address.name()));
    std::erase_if(waiting_, is_late);
    Deadline next = Deadline::max();
    for (const Call& call : waiting_) next = std::min(next, call.deadline);
    for (const Call& call : under_way_)
        if (!is_late(call)) next = std::min(next, call.deadline);
    if (next != Deadline::max()) watch(next);
    const bool connection_is_late = std::ranges::any_of(under_way_, is_late);
    fail(failed);
    if (connection_is_late && stream_ != nullptr) lose(late(options_.address.name()));
}

void RespClient::close() {
    state_ = State::kClosed;
    stream_.reset();
    late_timer_.cancel();
    connect_timer_.cancel();
    // Callbacks may own whoever closes this.
    const auto waiting = std::exchange(waiting_, {});
    const auto under_way = std::exchange(under_way_, {});
}

}  // namespace sluice::kvnode
