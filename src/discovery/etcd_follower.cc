#include "discovery/etcd_follower.h"

#include <fmt/format.h>

#include <utility>

#include "base/limits.h"
#include "base/log.h"

namespace sluice::discovery {
namespace {

constexpr std::chrono::seconds kAnswerTime{5};

std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }

}  // namespace

EtcdFollower::EtcdFollower(net::EventLoop& loop, net::HttpClient& client, EtcdOptions options,
                           OnSet on_set)
    : loop_(loop),
      client_(client),
      options_(std::move(options)),
      on_set_(std::move(on_set)),
      view_(options_.prefix, now()) {}

void EtcdFollower::start() { ask(); }

void EtcdFollower::ask() {
    net::ClientRequest request{.method = "POST",
                               .url = options_.endpoints[endpoint_] + "/v3/kv/range",
                               .headers = {{"Content-Type", "application/json"}},
                               .body = view_.ask(now()),
                               .repeatable = true};
    call_ = std::make_unique<CollectedCall>(
        loop_, client_, std::move(request), limits::kEtcdAnswerBytes, kAnswerTime,
        [this](Result<CollectedAnswer> answer) { on_answer(std::move(answer)); });
}

void EtcdFollower::ask_later() {
    next_ = loop_.call_after(view_.due() - now(), [this] { ask(); });
}

void EtcdFollower::on_answer(Result<CollectedAnswer> answer) {
    const bool answered = answers();
    if (answer && answer->status != 200)
        answer = std::unexpected(Error(ErrorCode::kUnavailable,
                                       fmt::format("it answers with status {}", answer->status)));
    std::optional<Error> failure;
    if (!answer) {
        failure = answer.error();
        view_.on_failure(now());
    } else if (auto set = view_.on_answer(answer->body, now()); !set) {
        failure = set.error();
    } else if (*set) {
        on_set_(**set);
    }
    const std::string& endpoint = options_.endpoints[endpoint_];
    if (failure && answered)
        log::warn("etcd at {} does not answer: {}; the workers stay as they were", endpoint,
                  failure->message());
    if (!failure && !answered) log::info("etcd at {} answers", endpoint);
    if (failure) endpoint_ = (endpoint_ + 1) % options_.endpoints.size();
    tell_of_rejected();
    ask_later();
}

void EtcdFollower::tell_of_rejected() {
    const std::size_t count = view_.rejected().size();
    if (count > told_rejected_) {
        const auto& [key, why] = *view_.rejected().begin();
        log::warn("{} keys below {} are no workers; {}: {}", count, options_.prefix, key, why);
    }
    told_rejected_ = count;
}

}  // namespace sluice::discovery
