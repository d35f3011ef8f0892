#pragma once

// Reading JSON objects that may come from another Sluice or from a damaged file: a field that is
// absent or of the wrong type is its default, never an exception. For the sources of this folder
// only: it brings Boost.JSON with it.

#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::record {

/// Error `kInvalid` if the text is not one JSON object.
[[nodiscard]] Result<boost::json::object> parse_object(std::string_view text);

[[nodiscard]] std::string text_field(const boost::json::object& object, std::string_view name);
/// Also of a number with a fraction, rounded down; 0 for what is negative or absent.
[[nodiscard]] std::uint64_t count_field(const boost::json::object& object, std::string_view name);
[[nodiscard]] std::optional<double> number_field(const boost::json::object& object,
                                                 std::string_view name);
/// From milliseconds, to the nearest microsecond.
[[nodiscard]] std::optional<std::chrono::microseconds> ms_field(const boost::json::object& object,
                                                                std::string_view name);
/// Null if it is not there or no object.
[[nodiscard]] const boost::json::object* object_field(const boost::json::object& object,
                                                      std::string_view name);
[[nodiscard]] const boost::json::array* array_field(const boost::json::object& object,
                                                    std::string_view name);

}  // namespace sluice::record
