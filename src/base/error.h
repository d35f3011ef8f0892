#pragma once

// Errors are values: what went wrong (code), what to do about it (message), where (place).
//
// Everything the outside can cause is an Error. The message is a sentence for the person who can
// act on it, names the offending value and its limit, and holds no secret. The place is a JSON
// path ("messages[3].content"), a "file:line" or a field name; empty when there is none.

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace sluice {

enum class ErrorCode : std::uint8_t {
    kInvalid,      ///< Malformed or contradictory input.
    kOutOfRange,   ///< A number outside its limits.
    kNotFound,     ///< A name, file or id that is not there.
    kUnsupported,  ///< Understood, but not available here.
    kCorrupt,      ///< Stored data that fails its own checks.
    kIo,           ///< The operating system refused.
    kTimeout,      ///< A deadline passed.
    kCancelled,    ///< The caller took the request back.
    kExhausted,    ///< A bounded resource is full; trying later may work.
    kUnavailable,  ///< The other side is gone or not ready.
    kInternal,     ///< A bug, reported instead of hidden.
};

/// The code's name as it stands in logs, for example "out_of_range".
[[nodiscard]] std::string_view to_string(ErrorCode code);

class [[nodiscard]] Error {
public:
    Error(ErrorCode code, std::string message, std::string place = {})
        : code_(code), message_(std::move(message)), place_(std::move(place)) {}

    static Error invalid(std::string message, std::string place = {}) {
        return {ErrorCode::kInvalid, std::move(message), std::move(place)};
    }
    static Error not_found(std::string message, std::string place = {}) {
        return {ErrorCode::kNotFound, std::move(message), std::move(place)};
    }
    static Error unsupported(std::string message, std::string place = {}) {
        return {ErrorCode::kUnsupported, std::move(message), std::move(place)};
    }
    static Error corrupt(std::string message, std::string place = {}) {
        return {ErrorCode::kCorrupt, std::move(message), std::move(place)};
    }
    /// `what` failed with errno `error_number`; its text is appended.
    static Error io(std::string_view what, int error_number, std::string place = {});
    /// `name` is `value`, but must be below `limit`.
    static Error out_of_range(std::string_view name, std::uint64_t value, std::uint64_t limit);

    [[nodiscard]] ErrorCode code() const { return code_; }
    [[nodiscard]] const std::string& message() const { return message_; }
    [[nodiscard]] const std::string& place() const { return place_; }

    /// The same error, one level further out: `outer` is put before the place.
    [[nodiscard]] Error within(std::string_view outer) const;

    /// "place: message", or the message alone.
    [[nodiscard]] std::string to_string() const;

private:
    ErrorCode code_;
    std::string message_;
    std::string place_;
};

template <class T>
using Result = std::expected<T, Error>;

}  // namespace sluice
