#include "adapters/worker_probe.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "adapters/worker_answer.h"
#include "base/limits.h"

namespace sluice::adapters {
namespace {

/// A whole answer in one piece.
struct Answer {
    int status = 0;
    std::string body;  ///< Bounded; what is cut off is not valid JSON any more.
};

}  // namespace

/// Owned by the handle, and by whichever of its callbacks runs.
struct WorkerProbe::State : std::enable_shared_from_this<WorkerProbe::State> {
    using OnAnswer = std::function<void(Result<Answer>)>;

    State(net::HttpClient& http_client, std::string worker_url, std::chrono::milliseconds limit)
        : client(http_client), url(std::move(worker_url)), time(limit) {}

    void get(std::string_view path, OnAnswer work) {
        answer = {};
        on_answer = std::move(work);
        const auto with_self = [weak = weak_from_this()](auto then) {
            if (const auto self = weak.lock()) then(*self);
        };
        call = client.start(
            {.url = url + std::string(path),
             .connect_time = time,
             .head_time = time,
             .stall_time = time},
            {.on_head =
                 [with_self](int status, const net::HttpHeaders&) {
                     with_self([&](State& self) { self.answer.status = status; });
                 },
             .on_data =
                 [with_self](std::string_view data) {
                     with_self([&](State& self) { self.take(data); });
                 },
             .on_done =
                 [with_self] { with_self([](State& self) { self.give(std::move(self.answer)); }); },
             .on_error =
                 [with_self](const Error& error) {
                     with_self([&](State& self) { self.give(std::unexpected(error)); });
                 }});
    }

    void take(std::string_view data) {
        answer.body.append(data.substr(0, limits::kPortTextBytes - answer.body.size()));
    }

    /// Taken out first: it may ask for the next answer.
    void give(Result<Answer> result) {
        const OnAnswer work = std::exchange(on_answer, nullptr);
        work(std::move(result));
    }

    [[nodiscard]] std::unexpected<Error> refused(const Answer& given) const {
        return std::unexpected(error_of_answer(url, given.status, given.body));
    }

    template <class T>
    [[nodiscard]] Result<T> checked(Result<T> parsed) const {
        if (parsed) return parsed;
        return std::unexpected(
            Error(ErrorCode::kCorrupt, fmt::format("the worker at {} sent what can't be read: {}",
                                                   url, parsed.error().to_string())));
    }

    net::HttpClient& client;
    const std::string url;
    const std::chrono::milliseconds time;
    OnAnswer on_answer;
    Answer answer;
    std::unique_ptr<net::HttpCall> call;
};

WorkerProbe::WorkerProbe(std::shared_ptr<State> state) : state_(std::move(state)) {}

WorkerProbe::~WorkerProbe() { state_->call.reset(); }

std::unique_ptr<WorkerProbe> WorkerProbe::start(
    net::HttpClient& client, const std::string& worker_url,
    std::function<void(Result<port::ServerInfo>)> on_result, std::chrono::milliseconds time) {
    const auto state = std::make_shared<State>(client, worker_url, time);
    // The state owns these functions while they wait, so they know it by a plain reference.
    const auto on_info = [&self = *state, on_result](Result<Answer> answer) {
        if (!answer) return on_result(std::unexpected(answer.error()));
        if (answer->status != 200) return on_result(self.refused(*answer));
        on_result(self.checked(port::parse_server_info(answer->body)));
    };
    state->get("/ready", [&self = *state, on_result, on_info](Result<Answer> answer) {
        if (!answer) return on_result(std::unexpected(answer.error()));
        if (answer->status != 200) return on_result(self.refused(*answer));
        self.get("/server_info", on_info);
    });
    return std::unique_ptr<WorkerProbe>(new WorkerProbe(state));
}

std::unique_ptr<WorkerProbe> WorkerProbe::load(
    net::HttpClient& client, const std::string& worker_url,
    std::function<void(Result<port::LoadReport>)> on_result, std::chrono::milliseconds time) {
    const auto state = std::make_shared<State>(client, worker_url, time);
    state->get("/ready", [&self = *state, on_result](Result<Answer> answer) {
        if (!answer) return on_result(std::unexpected(answer.error()));
        if (answer->status != 200 && answer->status != 503) return on_result(self.refused(*answer));
        on_result(self.checked(port::parse_load_report(answer->body)));
    });
    return std::unique_ptr<WorkerProbe>(new WorkerProbe(state));
}

}  // namespace sluice::adapters
