#include "adapters/openai_leg.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace sluice::adapters {
namespace {

using std::chrono::steady_clock;

/// The client's own clock is not used: what counts as silence changes with the first event.
constexpr std::chrono::hours kNever{24};

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
    return text.size() >= prefix.size() &&
           std::ranges::equal(text.substr(0, prefix.size()), prefix, {}, [](char c) {
               return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
           });
}

}  // namespace

/// Owned by the handle, and by whichever of its callbacks runs.
struct OpenAiLeg::State : std::enable_shared_from_this<OpenAiLeg::State> {
    State(net::EventLoop& event_loop, OpenAiLegEvents leg_events, const OpenAiLegOptions& given)
        : loop(event_loop), events(std::move(leg_events)), options(given) {}

    void start(net::HttpClient& client, std::string url, net::HttpHeaders headers,
               std::vector<net::SharedText> shared_body) {
        const auto with_self = [weak = weak_from_this()](auto work) {
            if (const auto self = weak.lock(); self && !self->over) work(*self);
        };
        last_sign = steady_clock::now();
        watch_silence();
        call = client.start({.method = "POST",
                             .url = std::move(url),
                             .headers = std::move(headers),
                             .shared_body = std::move(shared_body),
                             .connect_time = options.connect_time,
                             .head_time = kNever,
                             .stall_time = kNever,
                             // Servers close connections that wait, and cross with a request.
                             .repeatable = true},
                            {.on_head =
                                 [with_self](int status, const net::HttpHeaders& head) {
                                     with_self([&](State& self) { self.on_head(status, head); });
                                 },
                             .on_data =
                                 [with_self](std::string_view data) {
                                     with_self([&](State& self) { self.on_data(data); });
                                 },
                             .on_done = [with_self] { with_self([](State& s) { s.on_done(); }); },
                             .on_error =
                                 [with_self](const Error& error) {
                                     with_self([&](State& self) { self.on_broken(error); });
                                 }});
    }

    /// Nothing is called from now on.
    void end() {
        over = true;
        silence.cancel();
        call.reset();
    }

    [[nodiscard]] std::chrono::milliseconds silence_limit() const {
        return any_event ? options.stall_time : options.first_time;
    }

    // Looked at now and then: an event's arrival is a store, not a new timer.
    void watch_silence() {
        const auto left = last_sign + silence_limit() - steady_clock::now();
        silence =
            loop.call_after(std::max<std::chrono::nanoseconds>(left, std::chrono::milliseconds(1)),
                            [weak = weak_from_this()] {
                                const auto self = weak.lock();
                                if (self && !self->over) self->on_silence();
                            });
    }

    void on_silence() {
        if (steady_clock::now() - last_sign < silence_limit()) return watch_silence();
        fail({ErrorCode::kTimeout,
              "the upstream sent nothing for " + std::to_string(silence_limit().count()) + " ms"});
    }

    void on_head(int code, const net::HttpHeaders& head) {
        status = code;
        const std::string_view type = head.find("content-type").value_or("");
        streams = status == 200 && starts_with_ignoring_case(type, "text/event-stream");
        if (!streams) {
            headers = head;
            return;
        }
        const auto self = shared_from_this();  // An event may let go of the handle.
        events.on_stream(head);
    }

    void on_data(std::string_view data) {
        last_sign = steady_clock::now();
        if (!streams) {
            if (data.size() > limits::kUpstreamBodyBytes - body.size())
                return fail({ErrorCode::kExhausted, "the upstream's answer is larger than " +
                                                        std::to_string(limits::kUpstreamBodyBytes) +
                                                        " bytes (limit upstream.body)"});
            body += data;
            return;
        }
        const auto self = shared_from_this();
        const auto fed = cutter.feed(data, [this](const net::SseCutter::Piece& piece) {
            if (over) return;
            if (piece.has_data && !std::exchange(any_event, true)) {
                // From now on silence is a stall, which may be shorter.
                watch_silence();
            }
            events.on_event(piece);
        });
        if (over) return;
        if (!fed) return fail(fed.error());
        events.on_pause();
    }

    void on_done() {
        const auto self = shared_from_this();
        if (!streams) {
            end();
            return events.on_answer(status, headers, std::move(body));
        }
        const std::string tail(cutter.in_event() ? std::string_view() : cutter.rest());
        end();
        events.on_end(tail);
    }

    void on_broken(const Error& error) {
        // What a broken peer sends is not the client's mistake.
        const bool not_http = error.code() == ErrorCode::kInvalid;
        fail({not_http ? ErrorCode::kCorrupt : error.code(), error.message()});
    }

    void fail(const Error& error) {
        const auto self = shared_from_this();
        end();
        events.on_error(error);
    }

    net::EventLoop& loop;
    const OpenAiLegEvents events;
    const OpenAiLegOptions options;
    std::unique_ptr<net::HttpCall> call;
    net::Timer silence;
    net::SseCutter cutter;
    net::HttpHeaders headers;  ///< Of an answer that is no stream.
    std::string body;          ///< The same; bounded.
    steady_clock::time_point last_sign;
    int status = 0;
    bool streams = false;
    bool any_event = false;
    bool over = false;
};

OpenAiLeg::OpenAiLeg(std::shared_ptr<State> state) : state_(std::move(state)) {}
OpenAiLeg::~OpenAiLeg() { state_->end(); }

std::unique_ptr<OpenAiLeg> OpenAiLeg::start(net::EventLoop& loop, net::HttpClient& client,
                                            std::string url, net::HttpHeaders headers,
                                            std::vector<net::SharedText> body,
                                            OpenAiLegEvents events,
                                            const OpenAiLegOptions& options) {
    auto state = std::make_shared<State>(loop, std::move(events), options);
    state->start(client, std::move(url), std::move(headers), std::move(body));
    return std::unique_ptr<OpenAiLeg>(new OpenAiLeg(std::move(state)));
}

}  // namespace sluice::adapters
