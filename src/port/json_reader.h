#pragma once

// Reads the port's messages out of JSON text. Two layers: JsonDocument parses, JsonFields takes an
// object apart by name and keeps the first thing that is wrong, with its place
// ("sampling_params.top_k"), so that a parser is a list of fields and one check at the end.
//
// null is the same as an absent field. Of a key that occurs twice the last value counts. For the
// sources of this folder only: it brings Boost.JSON with it.

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/sampling_params.h"

namespace sluice::port {

/// One parsed text whose root is an object. Numbers with a fraction or an exponent are rounded once,
/// from their text to float, so that every float written by JsonWriter comes back bit by bit.
class JsonDocument {
public:
    JsonDocument() : memory_(buffer_, sizeof(buffer_)) {}
    JsonDocument(const JsonDocument&) = delete;
    JsonDocument& operator=(const JsonDocument&) = delete;

    /// Valid as long as the document. May be called once.
    [[nodiscard]] Result<const boost::json::object*> parse(std::string_view text);

private:
    unsigned char buffer_[4096];
    boost::json::monotonic_resource memory_;
    boost::json::value root_;
};

enum class Need : std::uint8_t { kRequired, kOptional };

/// Which values a float may have; NaN can't be written in JSON.
struct FloatRange {
    float low;
    float high;
    bool low_is_allowed = true;
};

class JsonFields {
public:
    JsonFields(const boost::json::object& object, std::string place, std::optional<Error>& error)
        : object_(object), place_(std::move(place)), error_(error) {}

    /// The first error of this object and of all below and above it.
    [[nodiscard]] bool failed() const { return error_.has_value(); }

    // Each leaves `out` alone if the field is absent or wrong.
    void read(std::string_view name, bool& out);
    void read(std::string_view name, std::string& out, std::size_t bytes_max);
    void read(std::string_view name, float& out, FloatRange range);
    void read(std::string_view name, std::uint64_t& out, std::uint64_t low, std::uint64_t high);
    void read(std::string_view name, std::uint32_t& out, std::uint64_t low, std::uint64_t high);
    void read(std::string_view name, std::int64_t& out, std::int64_t low, std::int64_t high);
    void read(std::string_view name, std::int32_t& out, std::int64_t low, std::int64_t high);
    void read_tokens(std::string_view name, std::vector<TokenId>& out, std::size_t count_max,
                     Need need = Need::kOptional);
    /// Digests of 64 lower-case hexadecimal digits each.
    void read_digests(std::string_view name, std::vector<Sha256Digest>& out, std::size_t count_max);
    void read_digest(std::string_view name, std::optional<Sha256Digest>& out);
    /// Exactly kRidLength lower-case hexadecimal digits.
    void read_rid(std::string_view name, std::string& out);
    void read_optional_rid(std::string_view name, std::string& out);

    /// Null if absent or not an object; then required ones are an error.
    [[nodiscard]] const boost::json::object* object(std::string_view name,
                                                    Need need = Need::kOptional);
    [[nodiscard]] const boost::json::array* array(std::string_view name, std::size_t count_max);
    [[nodiscard]] JsonFields inside(const boost::json::object& object, std::string_view name) {
        return {object, place_of(name), error_};
    }

    /// An error if the field is there: it would change the answer, and can't be honoured.
    void refuse(std::string_view name, std::string_view why);
    /// A wrong field: `message` says what it must be.
    void fail(std::string_view name, std::string message, ErrorCode code = ErrorCode::kInvalid);

    [[nodiscard]] std::string place_of(std::string_view name) const;

private:
    /// Null if absent or null.
    [[nodiscard]] const boost::json::value* find(std::string_view name) const;

    const boost::json::object& object_;
    std::string place_;
    std::optional<Error>& error_;
};

/// A number as float, if it is one and finite as such.
[[nodiscard]] std::optional<float> as_float(const boost::json::value& value);
/// A token id: a whole number from 0 to 2^31 - 1.
[[nodiscard]] std::optional<TokenId> as_token(const boost::json::value& value);

}  // namespace sluice::port
