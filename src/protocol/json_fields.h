#pragma once

// Reads the fields of a JSON object from a client, strictly and with errors a client can act on.
//
// The first error is kept and later reads go on with defaults, so that a parser reads like a list of
// fields; it must look at `error` before it uses what it read. A field that is null counts as
// absent. For the .cc files of this folder only: Boost.JSON is a heavy header.

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::protocol {

/// A document with limits on depth and memory, whose root is an object.
[[nodiscard]] Result<boost::json::value> parse_json_object(std::string_view body);

/// "a string", "an object", ...
[[nodiscard]] std::string_view kind_of(const boost::json::value& value);

/// The value as JSON, cut to what fits into a message.
[[nodiscard]] std::string shown(const boost::json::value& value);

struct Range {
    enum class Lower : std::uint8_t { kIncluded, kExcluded };

    double min;
    double max;
    Lower lower = Lower::kIncluded;
};

class FieldReader {
public:
    /// `path` stands before every place; "" for the root. `object` must outlive the reader.
    explicit FieldReader(const boost::json::object& object, std::string path = {});

    /// The field, or nullptr if it is absent or null.
    [[nodiscard]] const boost::json::value* find(std::string_view name) const;

    [[nodiscard]] std::optional<double> number(std::string_view name, Range range);
    [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name, std::int64_t min,
                                                      std::int64_t max);
    [[nodiscard]] std::optional<bool> boolean(std::string_view name);
    [[nodiscard]] std::optional<std::string> string(std::string_view name);
    [[nodiscard]] const boost::json::array* array(std::string_view name);
    [[nodiscard]] const boost::json::object* object(std::string_view name);

    /// Where the field stands: "thinking.type", "messages[3].content".
    [[nodiscard]] std::string place(std::string_view name) const;

    /// "NAME must be WANTED, but is VALUE".
    void fail_type(std::string_view name, std::string_view wanted, const boost::json::value& value);
    void fail(Error error);

    [[nodiscard]] const std::optional<Error>& error() const { return error_; }

private:
    const boost::json::object& object_;
    std::string path_;
    std::optional<Error> error_;
};

/// The integer, or nothing if the value is another kind or lies outside. Whole floats count.
[[nodiscard]] std::optional<std::int64_t> as_integer(const boost::json::value& value);

}  // namespace sluice::protocol
