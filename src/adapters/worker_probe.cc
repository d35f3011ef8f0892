#include "adapters/worker_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "adapters/worker_answer.h"
#include "base/limits.h"

namespace sluice::adapters {

/// Owned by the handle, and by whichever of its callbacks runs.
struct WorkerProbe::State : std::enable_shared_from_this<WorkerProbe::State> {
    using OnAnswer = std::function<void(int status, std::string_view body)>;
    using OnFailure = std::function<void(const Error& error)>;

    State(OnAnswer answer, OnFailure failure)
        : on_answer(std::move(answer)), on_failure(std::move(failure)) {}

    void start(net::HttpClient& client, std::string url, std::chrono::milliseconds time) {
        const auto with_self = [weak = weak_from_this()](auto work) {
            if (const auto self = weak.lock()) work(*self);
        };
        call = client.start(
            {.url = std::move(url), .connect_time = time, .head_time = time, .stall_time = time},
            {.on_head =
                 [with_self](int code, const net::HttpHeaders&) {
                     with_self([&](State& self) { self.status = code; });
                 },
             .on_data =
                 [with_self](std::string_view data) {
                     with_self([&](State& self) { self.take(data); });
                 },
             .on_done =
                 [with_self] {
                     with_self([](State& self) { self.on_answer(self.status, self.body); });
                 },
             .on_error =
                 [with_self](const Error& error) {
                     with_self([&](State& self) { self.on_failure(error); });
                 }});
    }

    void take(std::string_view data) {
        body.append(data.substr(0, limits::kPortTextBytes - body.size()));
    }

    const OnAnswer on_answer;
    const OnFailure on_failure;
    std::unique_ptr<net::HttpCall> call;
    std::string body;  ///< Bounded; what is cut off is not valid JSON any more.
    int status = 0;
};

namespace {

template <class T>
Result<T> parsed(std::string_view url, Result<T> result) {
    if (result) return result;
    return std::unexpected(
        Error(ErrorCode::kCorrupt, fmt::format("the worker at {} sent what can't be read: {}", url,
                                               result.error().to_string())));
}

}  // namespace

WorkerProbe::WorkerProbe(std::shared_ptr<State> state) : state_(std::move(state)) {}
WorkerProbe::~WorkerProbe() { state_->call.reset(); }

std::unique_ptr<WorkerProbe> WorkerProbe::load(
    net::HttpClient& client, const std::string& worker_url,
    const std::function<void(Result<port::LoadReport>)>& on_result,
    std::chrono::milliseconds time) {
    auto state = std::make_shared<State>(
        [on_result, worker_url](int status, std::string_view body) {
            if (status != 200 && status != 503) {
                return on_result(std::unexpected(error_of_answer(worker_url, status, body)));
            }
            on_result(parsed(worker_url, port::parse_load_report(body)));
        },
        [on_result](const Error& error) { on_result(std::unexpected(error)); });
    state->start(client, worker_url + "/ready", time);
    return std::unique_ptr<WorkerProbe>(new WorkerProbe(std::move(state)));
}

std::unique_ptr<WorkerProbe> WorkerProbe::info(
    net::HttpClient& client, const std::string& worker_url,
    const std::function<void(Result<port::ServerInfo>)>& on_result,
    std::chrono::milliseconds time) {
    auto state = std::make_shared<State>(
        [on_result, worker_url](int status, std::string_view body) {
            if (status != 200) {
                return on_result(std::unexpected(error_of_answer(worker_url, status, body)));
            }
            on_result(parsed(worker_url, port::parse_server_info(body)));
        },
        [on_result](const Error& error) { on_result(std::unexpected(error)); });
    state->start(client, worker_url + "/server_info", time);
    return std::unique_ptr<WorkerProbe>(new WorkerProbe(std::move(state)));
}

}  // namespace sluice::adapters
