#include "trace/load_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::trace {

LoadGenerator::LoadGenerator(net::EventLoop& loop, net::HttpClient& client, LoadTarget target,
                             PromptMaker prompts, std::vector<PlannedRequest> plan,
                             LoadOptions options, Events events)
    : loop_(loop),
      client_(client),
      target_(std::move(target)),
      prompts_(prompts),
      plan_(std::move(plan)),
      options_(options),
      events_(std::move(events)) {}

void LoadGenerator::start() {
    start_ = std::chrono::steady_clock::now();
    later_ = loop_.call_after({}, [this] {
        if (options_.concurrency == 0) return send_due();
        while (!stopped_ && next_ < plan_.size() && open_.size() < options_.concurrency)
            send(next_++, std::chrono::steady_clock::now());
        finish_if_done();
    });
}

void LoadGenerator::stop() {
    stopped_ = true;
    next_arrival_.cancel();
    later_ = loop_.call_after({}, [this] { finish_if_done(); });
}

void LoadGenerator::send_due() {
    const SteadyTime now = std::chrono::steady_clock::now();
    while (!stopped_ && next_ < plan_.size() && start_ + plan_[next_].at <= now) {
        const std::size_t index = next_++;
        if (open_.size() < options_.open_max) {
            send(index, start_ + plan_[index].at);
            continue;
        }
        ++ended_;
        events_.on_result(plan_[index],
                          {.outcome = CallOutcome::kError,
                           .status = 0,
                           .ttft = std::nullopt,
                           .gaps = {},
                           .error = fmt::format("not sent: {} requests are open", open_.size())});
    }
    if (!stopped_ && next_ < plan_.size()) {
        next_arrival_ = loop_.call_after(start_ + plan_[next_].at - now, [this] { send_due(); });
    }
    finish_if_done();
}

void LoadGenerator::send(std::size_t index, SteadyTime due) {
    const PlannedRequest& request = plan_[index];
    open_.emplace(index,
                  StreamCall::start(
                      client_, target_, request_body(target_, request, prompts_.prompt(request)),
                      {.expects_json = request.kind == RequestKind::kJsonSchema}, due,
                      [this, index](const CallResult& result) { on_end(index, result); }));
}

void LoadGenerator::on_end(std::size_t index, const CallResult& result) {
    open_.erase(index);
    ++ended_;
    events_.on_result(plan_[index], result);
    if (options_.concurrency > 0 && !stopped_ && next_ < plan_.size())
        send(next_++, std::chrono::steady_clock::now());
    finish_if_done();
}

void LoadGenerator::finish_if_done() {
    if (!open_.empty() || (!stopped_ && next_ < plan_.size())) return;
    if (const auto done = std::exchange(events_.on_done, nullptr)) done();
}

}  // namespace sluice::trace
