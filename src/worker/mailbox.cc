#include "worker/mailbox.h"

#include <utility>

namespace sluice::worker {
namespace {

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

void merge(engine::Output& into, const engine::Output& next) {
    append(into.tokens, next.tokens);
    append(into.logprobs, next.logprobs);
    // The engine shows those gathered so far in each step of a prefill; complete they are with the
    // first token, and before it nobody wants them.
    if (!next.tokens.empty()) append(into.input_logprobs, next.input_logprobs);
    into.prompt_tokens = next.prompt_tokens;
    into.cached_tokens = next.cached_tokens;
    into.completion_tokens = next.completion_tokens;
    into.computed_tokens = next.computed_tokens;
    into.drafted = next.drafted;
    into.accepted = next.accepted;
    into.finish = next.finish;
    into.matched_stop = next.matched_stop;
    into.message = next.message;
    into.held = next.held;
}

}  // namespace

bool Mailbox::put(const engine::Output& output) {
    const std::lock_guard lock(mutex_);
    if (!merged_) merged_.emplace();
    merge(*merged_, output);
    if (delivery_ == Delivery::kAtEnd && !output.finish) return false;
    return !std::exchange(woken_, true);
}

std::optional<engine::Output> Mailbox::take() {
    const std::lock_guard lock(mutex_);
    woken_ = false;
    return std::exchange(merged_, std::nullopt);
}

}  // namespace sluice::worker
