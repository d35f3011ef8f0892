#pragma once

// POST /v1/completions, the answer: as a stream of chunks, or as one body. The older protocol has one
// shape, `text_completion`, for both, and log-probabilities as parallel lists.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/logprobs.h"
#include "protocol/response.h"

namespace sluice::protocol {

class CompletionStream {
public:
    explicit CompletionStream(const ResponseInfo& info);

    /// `text` must not be empty. Not const: `text_offset` counts on from chunk to chunk.
    [[nodiscard]] std::string delta(std::string_view text,
                                    std::span<const PositionLogprobs> logprobs = {});
    [[nodiscard]] std::string finish(FinishReason reason) const;
    /// Only for requests with include_usage.
    [[nodiscard]] std::string usage(const Usage& usage) const;

private:
    std::string head_;
    std::uint64_t offset_ = 0;  ///< Characters given.
};

class CompletionBody {
public:
    explicit CompletionBody(ResponseInfo info);

    void add(std::string_view text, std::span<const PositionLogprobs> logprobs = {});
    [[nodiscard]] std::string finish(FinishReason reason, const Usage& usage) const;

private:
    ResponseInfo info_;
    std::string text_;
    std::vector<PositionLogprobs> logprobs_;
};

}  // namespace sluice::protocol
