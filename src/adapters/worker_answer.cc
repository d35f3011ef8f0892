#include "adapters/worker_answer.h"

#include <fmt/format.h>

#include "port/port_error.h"

namespace sluice::adapters {
namespace {

ErrorCode code_of(int status, std::string_view code) {
    switch (status) {
        case 400:
            return code == port::kContextLengthExceeded ? ErrorCode::kOutOfRange
                                                        : ErrorCode::kInvalid;
        case 413: return ErrorCode::kInvalid;
        case 404:  // No engine port there.
        case 405:
        case 409: return ErrorCode::kUnavailable;
        case 429: return ErrorCode::kExhausted;
        case 503:
            if (code == port::kKvUnavailable) return ErrorCode::kNotFound;
            return code == port::kQueueFull ? ErrorCode::kExhausted : ErrorCode::kUnavailable;
        default: return ErrorCode::kInternal;
    }
}

}  // namespace

Error error_of_answer(std::string_view url, int status, std::string_view body) {
    const auto said = port::parse_port_error(body);
    if (!said) {
        return {code_of(status, {}),
                fmt::format("the worker at {} answered with status {}", url, status)};
    }
    return {code_of(status, said->code), said->message, said->param};
}

}  // namespace sluice::adapters
