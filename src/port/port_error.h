#pragma once

// What an engine answers on its port instead of frames, with a status of 400 or above:
// `{"error":{"message","code","param"}}`.

#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::port {

/// Values of `code`.
inline constexpr std::string_view kInvalidRequest = "invalid_request";                 // 400
inline constexpr std::string_view kContextLengthExceeded = "context_length_exceeded";  // 400
inline constexpr std::string_view kNotFound = "not_found";                             // 404
inline constexpr std::string_view kMethodNotAllowed = "method_not_allowed";            // 405
inline constexpr std::string_view kDuplicateRequest = "duplicate_request";             // 409
inline constexpr std::string_view kPayloadTooLarge = "payload_too_large";              // 413
inline constexpr std::string_view kInternal = "internal";                              // 500
inline constexpr std::string_view kQueueFull = "queue_full";                           // 503
inline constexpr std::string_view kNotReady = "not_ready";  // 503, loading or stopping
/// Too much of the KV that a decode was to start from can't be had: it goes back to prefill. 503, or
/// in the finish reason of a stream that has begun and brought no token.
inline constexpr std::string_view kKvUnavailable = "kv_unavailable";

struct PortError {
    std::string message;
    std::string code;
    std::string param;  ///< The field's place on the wire; absent there if empty.
    bool operator==(const PortError&) const = default;
};

[[nodiscard]] std::string to_json(const PortError& error);
[[nodiscard]] Result<PortError> parse_port_error(std::string_view json);

}  // namespace sluice::port
