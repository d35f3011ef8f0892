#include "gateway/kv_survey.h"

#include <fmt/format.h>

#include <utility>

namespace sluice::gateway {
namespace {

/// Holders that are asked at a time.
constexpr std::size_t kAtOnce = 32;
constexpr std::size_t kAnswerBytes = 16 * 1024 * 1024;

Result<std::string> body_of(Result<discovery::CollectedAnswer> answer) {
    if (!answer) return std::unexpected(answer.error());
    if (answer->status == 200) return std::move(answer->body);
    if (answer->status == 404)
        return std::unexpected(Error::unsupported("it keeps no blocks that others could ask for"));
    return std::unexpected(
        Error(ErrorCode::kUnavailable, fmt::format("it answered with status {}", answer->status)));
}

}  // namespace

KvSurvey::KvSurvey(net::EventLoop& loop, net::HttpClient& client, std::vector<KvHolder> holders,
                   KvQuestion question, std::function<void(std::vector<KvAnswer>)> on_done)
    : loop_(loop), client_(client), question_(std::move(question)), on_done_(std::move(on_done)) {
    for (KvHolder& holder : holders) answers_.push_back({.holder = std::move(holder)});
    // Later, so that the caller is done with what it does.
    begin_ = loop.call_after(std::chrono::milliseconds(0), [this] { go_on(); });
}

void KvSurvey::go_on() {
    for (; next_ < answers_.size() && running_.size() < kAtOnce; ++next_) {
        if (answers_[next_].holder.is_foreign()) {
            answers_[next_].body = std::unexpected(
                Error::unsupported("it is no server of ours: its own tools look into it"));
        } else {
            ask(next_);
        }
    }
    if (!running_.empty()) return;
    const auto done = std::exchange(on_done_, nullptr);
    done(std::move(answers_));
}

void KvSurvey::ask(std::size_t index) {
    net::ClientRequest request{.method = question_.method,
                               .url = answers_[index].holder.http + question_.path,
                               .body = question_.body,
                               .head_time = question_.time,
                               .stall_time = question_.time};
    if (!question_.body.empty()) request.headers.set("Content-Type", "application/json");
    if (!answers_[index].holder.password.empty())
        request.headers.set("Authorization", "Bearer " + answers_[index].holder.password);
    running_[index] = std::make_unique<discovery::CollectedCall>(
        loop_, client_, std::move(request), kAnswerBytes, question_.time,
        [this, index](Result<discovery::CollectedAnswer> answer) {
            on_answer(index, std::move(answer));
        });
}

void KvSurvey::on_answer(std::size_t index, Result<discovery::CollectedAnswer> answer) {
    answers_[index].body = body_of(std::move(answer));
    running_.erase(index);
    go_on();
}

}  // namespace sluice::gateway
