#pragma once

// One tenant's rate limits. What a request will cost is known only at its end, so an estimate is
// reserved at its beginning and the difference is settled: prompt tokens are known, the length of the
// answer is guessed as the mean of the tenant's answers so far, at most what the request allows.

#include <cstdint>
#include <optional>

#include "admission/tenant.h"
#include "admission/token_bucket.h"

namespace sluice::admission {

enum class QuotaKind : std::uint8_t { kRequests, kTokens };

struct QuotaRefusal {
    QuotaKind kind;
    Duration retry_after;
};

class Quota {
public:
    explicit Quota(const TenantLimits& limits)
        : requests_(limits.requests_per_minute), tokens_(limits.tokens_per_minute) {}

    /// Tokens a request will probably cost.
    [[nodiscard]] std::uint64_t estimate(std::uint64_t prompt_tokens,
                                         std::uint64_t max_tokens) const;

    /// Why a request of `tokens` must not be admitted now; asking changes nothing.
    [[nodiscard]] std::optional<QuotaRefusal> refusal(std::uint64_t tokens, Instant now) const;

    void reserve(std::uint64_t tokens, Instant now);

    /// The request that had `reserved` tokens has used `used`.
    void settle(std::uint64_t reserved, std::uint64_t used, Instant now);

    /// An answer ended by itself after this many tokens.
    void learn(std::uint64_t completion_tokens);

private:
    TokenBucket requests_;
    TokenBucket tokens_;
    double mean_completion_ = 0;
    std::uint32_t learned_ = 0;
};

}  // namespace sluice::admission
