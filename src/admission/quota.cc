#include "admission/quota.h"

#include <algorithm>

namespace sluice::admission {
namespace {

/// Guessed until there is something to learn from.
constexpr double kFirstGuess = 256;
/// How many answers the mean looks back on.
constexpr std::uint32_t kMemory = 32;

}  // namespace

std::uint64_t Quota::estimate(std::uint64_t prompt_tokens, std::uint64_t max_tokens) const {
    const double completion = learned_ == 0 ? kFirstGuess : std::max(1.0, mean_completion_);
    return prompt_tokens + std::min(max_tokens, static_cast<std::uint64_t>(completion));
}

std::optional<QuotaRefusal> Quota::refusal(std::uint64_t tokens, Instant now) const {
    const Duration requests = requests_.wait(1, now);
    const Duration wait = tokens_.wait(static_cast<double>(tokens), now);
    if (requests <= Duration::zero() && wait <= Duration::zero()) return std::nullopt;
    if (requests >= wait) return QuotaRefusal{QuotaKind::kRequests, requests};
    return QuotaRefusal{QuotaKind::kTokens, wait};
}

void Quota::reserve(std::uint64_t tokens, Instant now) {
    requests_.take(1, now);
    tokens_.take(static_cast<double>(tokens), now);
}

void Quota::settle(std::uint64_t reserved, std::uint64_t used, Instant now) {
    tokens_.take(static_cast<double>(used) - static_cast<double>(reserved), now);
}

void Quota::learn(std::uint64_t completion_tokens) {
    learned_ = std::min(learned_ + 1, kMemory);
    mean_completion_ += (static_cast<double>(completion_tokens) - mean_completion_) / learned_;
}

}  // namespace sluice::admission
