#pragma once

// Errors as OpenAI's protocols show them: `{"error":{"message","type","param","code"}}` with an HTTP
// status, or the same object as the last event of a stream that had already begun. The codes are a
// closed list that clients and dashboards rely on.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::protocol {

enum class ApiErrorCode : std::uint8_t {
    kInvalidRequest,
    kContextLengthExceeded,
    kModelNotFound,
    kNotFound,
    kMethodNotAllowed,
    kPayloadTooLarge,
    kUnauthorized,
    kRateLimited,
    kQueueFull,
    kDeadlineExceeded,
    kUnsupported,
    kWorkerLost,
    kRequestQuarantined,  ///< This request has taken down more than one worker.
    kUpstreamError,
    kInternal,
};

struct ApiError {
    ApiErrorCode code = ApiErrorCode::kInternal;
    std::string message;
    std::string param;  ///< The field's path; null on the wire if empty.
    bool operator==(const ApiError&) const = default;
};

/// As it stands in `code`: "invalid_request", ...
[[nodiscard]] std::string_view to_string(ApiErrorCode code);

[[nodiscard]] int http_status(ApiErrorCode code);

/// Whether waiting helps, so that the answer carries Retry-After.
[[nodiscard]] bool wants_retry_after(ApiErrorCode code);

/// The error object; the same for a body and for an event in a stream.
[[nodiscard]] std::string to_json(const ApiError& error);

/// What a client is told of `error`; its place becomes `param`.
[[nodiscard]] ApiError to_api_error(const Error& error);

/// `prompt_tokens` and `max_tokens` together don't fit into `context_tokens`.
[[nodiscard]] ApiError context_length_exceeded(std::uint64_t prompt_tokens,
                                               std::uint64_t max_tokens,
                                               std::uint64_t context_tokens);

[[nodiscard]] ApiError model_not_found(std::string_view model);

}  // namespace sluice::protocol
