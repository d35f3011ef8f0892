#include "base/error.h"

#include <fmt/format.h>

#include <system_error>

namespace sluice {

std::string_view to_string(ErrorCode code) {
    switch (code) {
        case ErrorCode::kInvalid: return "invalid";
        case ErrorCode::kOutOfRange: return "out_of_range";
        case ErrorCode::kNotFound: return "not_found";
        case ErrorCode::kUnsupported: return "unsupported";
        case ErrorCode::kCorrupt: return "corrupt";
        case ErrorCode::kIo: return "io";
        case ErrorCode::kTimeout: return "timeout";
        case ErrorCode::kCancelled: return "cancelled";
        case ErrorCode::kExhausted: return "exhausted";
        case ErrorCode::kUnavailable: return "unavailable";
        case ErrorCode::kInternal: return "internal";
    }
    return "unknown";
}

Error Error::io(std::string_view what, int error_number, std::string place) {
    return {ErrorCode::kIo,
            fmt::format("{}: {}", what, std::generic_category().message(error_number)),
            std::move(place)};
}

Error Error::out_of_range(std::string_view name, std::uint64_t value, std::uint64_t limit) {
    return {ErrorCode::kOutOfRange,
            fmt::format("{} is {}, but must be below {}", name, value, limit)};
}

Error Error::within(std::string_view outer) const {
    if (place_.empty()) return {code_, message_, std::string(outer)};
    const bool joined = place_.front() == '[' || outer.empty();
    return {code_, message_, fmt::format("{}{}{}", outer, joined ? "" : ".", place_)};
}

std::string Error::to_string() const {
    return place_.empty() ? message_ : fmt::format("{}: {}", place_, message_);
}

}  // namespace sluice
