#include "discovery/collected_call.h"

#include <utility>

namespace sluice::discovery {

/// Owned by the handle, and by whichever of its callbacks runs.
struct CollectedCall::State : std::enable_shared_from_this<CollectedCall::State> {
    OnAnswer on_answer;
    std::size_t bytes_max = 0;
    std::unique_ptr<net::HttpCall> call;
    net::Timer timer;
    CollectedAnswer answer;

    void take(std::string_view data) {
        if (!on_answer) return;
        if (answer.body.size() + data.size() > bytes_max)
            return end(std::unexpected(Error(ErrorCode::kExhausted, "the answer is too long")));
        answer.body += data;
    }

    void end(Result<CollectedAnswer> result) {
        timer.cancel();
        if (auto tell = std::exchange(on_answer, nullptr)) tell(std::move(result));
    }
};

CollectedCall::CollectedCall(net::EventLoop& loop, net::HttpClient& client,
                             net::ClientRequest request, std::size_t bytes_max,
                             std::chrono::milliseconds time, OnAnswer on_answer)
    : state_(std::make_shared<State>()) {
    state_->on_answer = std::move(on_answer);
    state_->bytes_max = bytes_max;
    const auto with_state = [weak = std::weak_ptr(state_)](auto work) {
        if (const auto state = weak.lock()) work(*state);
    };
    state_->call = client.start(
        std::move(request),
        {.on_head =
             [with_state](int status, const net::HttpHeaders&) {
                 with_state([&](State& state) { state.answer.status = status; });
             },
         .on_data =
             [with_state](std::string_view data) {
                 with_state([&](State& state) { state.take(data); });
             },
         .on_done =
             [with_state] { with_state([](State& state) { state.end(std::move(state.answer)); }); },
         .on_error =
             [with_state](const Error& error) {
                 with_state([&](State& state) { state.end(std::unexpected(error)); });
             }});
    state_->timer = loop.call_after(time, [with_state] {
        with_state([](State& state) {
            state.call.reset();
            state.end(std::unexpected(Error(ErrorCode::kTimeout, "it did not answer in time")));
        });
    });
}

CollectedCall::~CollectedCall() {
    state_->on_answer = nullptr;
    state_->call.reset();
}

}  // namespace sluice::discovery
