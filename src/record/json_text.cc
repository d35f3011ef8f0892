#include "record/json_text.h"

#include <boost/json/parse.hpp>
#include <cmath>
#include <limits>

namespace sluice::record {
namespace {

// Beyond this a double of microseconds is no longer exact; nothing real comes near it.
constexpr double kLongestMs = 1e12;

}  // namespace

Result<boost::json::object> parse_object(std::string_view text) {
    boost::system::error_code error;
    boost::json::parse_options options;
    options.max_depth = 16;
    const boost::json::value value =
        boost::json::parse({text.data(), text.size()}, error, {}, options);
    if (error) return std::unexpected(Error::invalid("is not JSON: " + error.message()));
    if (!value.is_object()) return std::unexpected(Error::invalid("is not a JSON object"));
    return value.get_object();
}

std::string text_field(const boost::json::object& object, std::string_view name) {
    const auto* const value = object.if_contains({name.data(), name.size()});
    const auto* const text = value != nullptr ? value->if_string() : nullptr;
    return text != nullptr ? std::string(text->data(), text->size()) : std::string();
}

std::optional<double> number_field(const boost::json::object& object, std::string_view name) {
    const auto* const value = object.if_contains({name.data(), name.size()});
    if (value == nullptr) return std::nullopt;
    if (value->is_double()) return value->get_double();
    if (value->is_int64()) return static_cast<double>(value->get_int64());
    if (value->is_uint64()) return static_cast<double>(value->get_uint64());
    return std::nullopt;
}

std::uint64_t count_field(const boost::json::object& object, std::string_view name) {
    const auto* const value = object.if_contains({name.data(), name.size()});
    if (value == nullptr) return 0;
    if (value->is_uint64()) return value->get_uint64();
    if (value->is_int64())
        return static_cast<std::uint64_t>(std::max<std::int64_t>(0, value->get_int64()));
    const double number = value->is_double() ? value->get_double() : 0.0;
    return number > 0.0 && number < 9e15 ? static_cast<std::uint64_t>(number) : 0;
}

std::optional<std::chrono::microseconds> ms_field(const boost::json::object& object,
                                                  std::string_view name) {
    const auto number = number_field(object, name);
    if (!number || !(std::abs(*number) < kLongestMs)) return std::nullopt;
    return std::chrono::microseconds(std::llround(*number * 1000.0));
}

const boost::json::object* object_field(const boost::json::object& object, std::string_view name) {
    const auto* const value = object.if_contains({name.data(), name.size()});
    return value != nullptr ? value->if_object() : nullptr;
}

const boost::json::array* array_field(const boost::json::object& object, std::string_view name) {
    const auto* const value = object.if_contains({name.data(), name.size()});
    return value != nullptr ? value->if_array() : nullptr;
}

}  // namespace sluice::record
