#pragma once

// POST /v1/chat/completions, the answer: as a stream of chunks, or as one body.
//
// The order of a stream is role, deltas, finish, usage if asked for, then `kStreamEnd`. Each rule
// below is one that some client breaks without: the role comes once and first, a delta is never
// empty and never holds null, the finish reason has a chunk of its own, usage comes with no choices
// and only on request. Each function gives the data of one event; framing is the gateway's.

#include <span>
#include <string>

#include "protocol/conversation.h"
#include "protocol/logprobs.h"
#include "protocol/output_parser.h"
#include "protocol/response.h"

namespace sluice::protocol {

class ChatStream {
public:
    explicit ChatStream(const ResponseInfo& info);

    [[nodiscard]] std::string role() const;
    [[nodiscard]] std::string delta(const OutputEvent& event,
                                    std::span<const PositionLogprobs> logprobs = {}) const;
    [[nodiscard]] std::string finish(FinishReason reason) const;
    /// Only for requests with include_usage.
    [[nodiscard]] std::string usage(const Usage& usage) const;

private:
    std::string head_;  ///< Of every chunk, up to the list of choices.
};

/// Collects the same events into the one body of an answer that doesn't stream.
class ChatBody {
public:
    /// With thinking on, the message has `reasoning_content` even if it is empty.
    ChatBody(ResponseInfo info, Thinking thinking);

    void add(const OutputEvent& event, std::span<const PositionLogprobs> logprobs = {});
    [[nodiscard]] std::string finish(FinishReason reason, const Usage& usage) const;

private:
    ResponseInfo info_;
    bool has_reasoning_;
    std::string reasoning_;
    std::string content_;
    std::vector<PositionLogprobs> reasoning_logprobs_;
    std::vector<PositionLogprobs> content_logprobs_;
};

}  // namespace sluice::protocol
