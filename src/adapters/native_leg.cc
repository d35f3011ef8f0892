#include "adapters/native_leg.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "adapters/worker_answer.h"
#include "base/limits.h"
#include "net/sse.h"
#include "port/port_error.h"

namespace sluice::adapters {
namespace {

using std::chrono::steady_clock;

constexpr std::string_view kDone = "[DONE]";

bool kv_is_unavailable(const port::GenerateFrame& frame) {
    return frame.finish_reason && frame.finish_reason->type == port::FinishType::kError &&
           frame.finish_reason->code == port::kKvUnavailable;
}

}  // namespace

/// Owned by the handle, and by whichever of its callbacks runs.
struct NativeLeg::State : std::enable_shared_from_this<NativeLeg::State> {
    State(std::string worker_url, std::string request_id, LegEvents leg_events,
          const LegOptions& leg_options)
        : url(std::move(worker_url)),
          rid(std::move(request_id)),
          events(std::move(leg_events)),
          options(leg_options) {}

    void start(net::HttpClient& client, std::string body) {
        const auto with_self = [weak = weak_from_this()](auto work) {
            if (const auto self = weak.lock(); self && !self->over) work(*self);
        };
        net::HttpHeaders headers{{"Content-Type", "application/json"}};
        if (!options.traceparent.empty()) headers.add("traceparent", options.traceparent);
        call = client.start(
            {.method = "POST",
             .url = url + "/generate",
             .headers = std::move(headers),
             .body = std::move(body),
             .connect_time = options.connect_time,
             .head_time = options.head_time,
             .stall_time = options.stall_time},
            {.on_head =
                 [with_self](int status, const net::HttpHeaders&) {
                     with_self([&](State& self) { self.on_head(status); });
                 },
             .on_data =
                 [with_self](std::string_view data) {
                     with_self([&](State& self) { self.on_data(data); });
                 },
             .on_done = [with_self] { with_self([](State& self) { self.on_done(); }); },
             .on_error =
                 [with_self](const Error& error) {
                     with_self([&](State& self) { self.on_broken(error); });
                 }});
    }

    /// Nothing is called from now on.
    void end() {
        over = true;
        // The worker has nothing left to abort, and its connection serves the next request.
        if (finished && call != nullptr) call->finish_unheard();
        call.reset();
    }

    void on_head(int answer_status) {
        status = answer_status;
        last_frame = steady_clock::now();
    }

    void on_data(std::string_view data) {
        if (status != 200) {
            const std::size_t room = limits::kPortTextBytes - refusal.size();
            refusal.append(data.substr(0, room));
            return;
        }
        const auto self = shared_from_this();  // An event may let go of the handle.
        const auto fed = parser.feed(data, [this](const net::SseParser::Event& event) {
            if (!over) on_event(event.data);
        });
        if (over) return;
        if (!fed) return fail_as_corrupt(fed.error().message());
        // Complete silence is the connection's to see; what is not silent may be no frame still.
        if (steady_clock::now() - last_frame > options.stall_time) on_stall();
    }

    void on_stall() {
        if (finished) return succeed();
        fail({ErrorCode::kTimeout, fmt::format("the worker at {} sent no frame for {} ms", url,
                                               options.stall_time.count())});
    }

    void on_event(std::string_view data) {
        if (data == kDone) return;
        if (finished) return fail_as_corrupt("a frame came after the last one");
        auto frame = port::parse_generate_frame(data);
        if (!frame) return fail_as_corrupt(frame.error().to_string());
        if (frame->rid != rid) return fail_as_corrupt("a frame belongs to another request");
        last_frame = steady_clock::now();
        finished = frame->finish_reason.has_value() || frame->kv.has_value();
        if (frame->kv) return hand_over(*frame);
        if (kv_is_unavailable(*frame)) {
            return fail({ErrorCode::kNotFound, frame->finish_reason->message});
        }
        any_frame = true;
        events.on_frame(*frame);
    }

    void hand_over(port::GenerateFrame& frame) {
        if (!events.on_handover) return fail_as_corrupt("nobody asked for a hand-over");
        if (frame.kv->source.url.empty()) frame.kv->source.url = url;
        const auto self = shared_from_this();
        end();
        events.on_handover(frame);
    }

    void on_done() {
        if (status != 200) return fail(error_of_answer(url, status, refusal));
        if (finished) return succeed();
        fail({ErrorCode::kUnavailable,
              fmt::format("the stream of the worker at {} ended before the request did", url)});
    }

    void on_broken(const Error& error) {
        if (finished) return succeed();
        // What a broken peer sends is not the client's mistake.
        const bool not_http = error.code() == ErrorCode::kInvalid;
        fail({not_http ? ErrorCode::kCorrupt : error.code(), error.message(), error.place()});
    }

    void succeed() {
        const auto self = shared_from_this();
        end();
        events.on_end();
    }

    void fail_as_corrupt(std::string_view what) {
        fail({ErrorCode::kCorrupt,
              fmt::format("the worker at {} sent what is no frame: {}", url, what)});
    }

    void fail(const Error& error) {
        const auto self = shared_from_this();
        call.reset();
        end();
        events.on_error(error, reached());
    }

    [[nodiscard]] Reached reached() const {
        if (any_frame) return Reached::kFrames;
        return status == 200 ? Reached::kWorker : Reached::kNobody;
    }

    const std::string url;
    const std::string rid;
    const LegEvents events;
    const LegOptions options;
    std::unique_ptr<net::HttpCall> call;
    net::SseParser parser;
    std::string refusal;  ///< Body of an answer that is not 200; bounded.
    steady_clock::time_point last_frame;
    int status = 0;
    bool any_frame = false;
    bool finished = false;  ///< The frame with the finish reason was there.
    bool over = false;
};

NativeLeg::NativeLeg(std::shared_ptr<State> state) : state_(std::move(state)) {}
NativeLeg::~NativeLeg() { state_->end(); }

std::unique_ptr<NativeLeg> NativeLeg::start(net::HttpClient& client, const std::string& worker_url,
                                            port::GenerateRequest request, LegEvents events,
                                            const LegOptions& options) {
    request.stream = true;
    auto state = std::make_shared<State>(worker_url, request.rid, std::move(events), options);
    state->start(client, port::to_json(request));
    return std::unique_ptr<NativeLeg>(new NativeLeg(std::move(state)));
}

}  // namespace sluice::adapters
