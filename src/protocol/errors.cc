#include "protocol/errors.h"

#include <fmt/format.h>

#include "protocol/json_writer.h"

namespace sluice::protocol {
namespace {

struct Row {
    std::string_view code;
    int status;
    std::string_view type;
};

/// OpenAI's and Anthropic's clients retry 408, 409, 429 and everything from 500 up: what would fail
/// again must stay below.
Row row_of(ApiErrorCode code) {
    constexpr std::string_view kRequest = "invalid_request_error";
    constexpr std::string_view kServer = "server_error";
    switch (code) {
        case ApiErrorCode::kInvalidRequest: return {"invalid_request", 400, kRequest};
        case ApiErrorCode::kContextLengthExceeded:
            return {"context_length_exceeded", 400, kRequest};
        case ApiErrorCode::kModelNotFound: return {"model_not_found", 404, kRequest};
        case ApiErrorCode::kNotFound: return {"not_found", 404, kRequest};
        case ApiErrorCode::kMethodNotAllowed: return {"method_not_allowed", 405, kRequest};
        case ApiErrorCode::kPayloadTooLarge: return {"payload_too_large", 413, kRequest};
        case ApiErrorCode::kUnauthorized: return {"unauthorized", 401, "authentication_error"};
        case ApiErrorCode::kRateLimited: return {"rate_limited", 429, "rate_limit_error"};
        case ApiErrorCode::kQueueFull: return {"queue_full", 429, "rate_limit_error"};
        case ApiErrorCode::kDeadlineExceeded: return {"deadline_exceeded", 504, kServer};
        case ApiErrorCode::kUnsupported: return {"unsupported", 400, kRequest};
        case ApiErrorCode::kWorkerLost: return {"worker_lost", 502, kServer};
        case ApiErrorCode::kRequestQuarantined: return {"request_quarantined", 422, kRequest};
        case ApiErrorCode::kUpstreamError: return {"upstream_error", 502, kServer};
        case ApiErrorCode::kInternal: return {"internal", 500, kServer};
    }
    return {"internal", 500, kServer};
}

ApiErrorCode api_code(ErrorCode code) {
    switch (code) {
        case ErrorCode::kInvalid:
        case ErrorCode::kOutOfRange: return ApiErrorCode::kInvalidRequest;
        case ErrorCode::kNotFound: return ApiErrorCode::kNotFound;
        case ErrorCode::kUnsupported: return ApiErrorCode::kUnsupported;
        case ErrorCode::kTimeout: return ApiErrorCode::kDeadlineExceeded;
        case ErrorCode::kExhausted: return ApiErrorCode::kQueueFull;
        case ErrorCode::kUnavailable: return ApiErrorCode::kWorkerLost;
        case ErrorCode::kCorrupt:
        case ErrorCode::kIo:
        case ErrorCode::kCancelled:
        case ErrorCode::kInternal: return ApiErrorCode::kInternal;
    }
    return ApiErrorCode::kInternal;
}

}  // namespace

std::string_view to_string(ApiErrorCode code) { return row_of(code).code; }

int http_status(ApiErrorCode code) { return row_of(code).status; }

bool wants_retry_after(ApiErrorCode code) {
    return code == ApiErrorCode::kRateLimited || code == ApiErrorCode::kQueueFull;
}

std::string to_json(const ApiError& error) {
    const Row row = row_of(error.code);
    std::string out = R"({"error":{"message":)";
    append_json_string(out, error.message);
    out += fmt::format(R"(,"type":"{}","param":)", row.type);
    if (error.param.empty()) {
        out += "null";
    } else {
        append_json_string(out, error.param);
    }
    out += fmt::format(R"(,"code":"{}"}}}})", row.code);
    return out;
}

ApiError to_api_error(const Error& error) {
    return {api_code(error.code()), error.message(), error.place()};
}

ApiError context_length_exceeded(std::uint64_t prompt_tokens, std::uint64_t max_tokens,
                                 std::uint64_t context_tokens) {
    return {
        ApiErrorCode::kContextLengthExceeded,
        fmt::format("the prompt has {} tokens and up to {} more may be generated, but the model's "
                    "context holds {}",
                    prompt_tokens, max_tokens, context_tokens),
        {}};
}

ApiError model_not_found(std::string_view model) {
    return {ApiErrorCode::kModelNotFound, fmt::format("there is no model \"{}\" here", model),
            "model"};
}

}  // namespace sluice::protocol
