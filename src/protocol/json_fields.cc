#include "protocol/json_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <new>

#include "base/assert.h"
#include "base/limits.h"

namespace sluice::protocol {

namespace json = boost::json;

namespace {

constexpr std::size_t kShownBytes = 60;

/// A document can need many times its own size ("[0,0,0,..."); this is where that ends.
class BoundedMemory final : public json::memory_resource {
private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        if (bytes > limits::kJsonMemoryBytes - used_) throw std::bad_alloc();
        SLUICE_ASSERT(alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
        used_ += bytes;
        return ::operator new(bytes);
    }
    void do_deallocate(void* memory, std::size_t bytes, std::size_t) override {
        used_ -= bytes;
        ::operator delete(memory);
    }
    bool do_is_equal(const memory_resource& other) const noexcept override {
        return this == &other;
    }

    std::size_t used_ = 0;
};

Error syntax_error(const json::error_code& code, std::size_t offset) {
    if (code == json::error::too_deep) {
        return Error::invalid(
            fmt::format("the body nests deeper than {} levels", limits::kJsonDepth));
    }
    if (code == json::error::extra_data) {
        return Error::invalid(fmt::format("the body goes on after its JSON, at byte {}", offset));
    }
    return Error::invalid(
        fmt::format("the body is not valid JSON: {} at byte {}", code.message(), offset));
}

}  // namespace

Result<json::value> parse_json_object(std::string_view body) {
    const json::storage_ptr storage = json::make_shared_resource<BoundedMemory>();
    json::parse_options options;
    options.max_depth = limits::kJsonDepth;
    try {
        json::parser parser(storage, options);
        parser.reset(storage);
        json::error_code code;
        const std::size_t read = parser.write(body.data(), body.size(), code);
        if (code) return std::unexpected(syntax_error(code, read));
        json::value value = parser.release();
        if (value.is_object()) return value;
        return std::unexpected(Error::invalid(
            fmt::format("the body must be a JSON object, but is {}", kind_of(value))));
    } catch (const std::bad_alloc&) {
        return std::unexpected(Error::invalid(fmt::format(
            "the body needs more than {} bytes of memory once read", limits::kJsonMemoryBytes)));
    } catch (const std::exception& error) {
        return std::unexpected(
            Error::invalid(fmt::format("the body can't be read: {}", error.what())));
    }
}

std::string_view kind_of(const json::value& value) {
    switch (value.kind()) {
        case json::kind::null: return "null";
        case json::kind::bool_: return "a boolean";
        case json::kind::int64:
        case json::kind::uint64:
        case json::kind::double_: return "a number";
        case json::kind::string: return "a string";
        case json::kind::array: return "an array";
        case json::kind::object: return "an object";
    }
    return "unknown";
}

std::string shown(const json::value& value) {
    // A large value is never serialised just to be cut.
    if (value.is_structured()) return std::string(kind_of(value));
    if (value.is_string() && value.get_string().size() > kShownBytes) {
        return fmt::format("a string of {} bytes", value.get_string().size());
    }
    return json::serialize(value);
}

std::optional<std::int64_t> as_integer(const json::value& value) {
    if (value.is_int64()) return value.get_int64();
    if (!value.is_double()) return std::nullopt;
    // Some clients write 16.0; beyond 2^53 a float no longer says which integer was meant.
    constexpr double kExact = 9'007'199'254'740'992.0;
    const double number = value.get_double();
    if (std::abs(number) > kExact || number != std::trunc(number)) return std::nullopt;
    return static_cast<std::int64_t>(number);
}

FieldReader::FieldReader(const json::object& object, std::string path)
    : object_(object), path_(std::move(path)) {}

const json::value* FieldReader::find(std::string_view name) const {
    const json::value* value = object_.if_contains(name);
    return value && !value->is_null() ? value : nullptr;
}

std::string FieldReader::place(std::string_view name) const {
    return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void FieldReader::fail(Error error) {
    if (!error_) error_ = std::move(error);
}

void FieldReader::fail_type(std::string_view name, std::string_view wanted,
                            const json::value& value) {
    fail(Error::invalid(fmt::format("{} must be {}, but is {}", name, wanted, shown(value)),
                        place(name)));
}

std::optional<double> FieldReader::number(std::string_view name, Range range) {
    const json::value* value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_number()) {
        fail_type(name, "a number", *value);
        return std::nullopt;
    }
    const double number = value->to_number<double>();
    const bool excluded = range.lower == Range::Lower::kExcluded;
    if (number <= range.max && (excluded ? number > range.min : number >= range.min)) return number;
    fail(Error(ErrorCode::kOutOfRange,
               excluded ? fmt::format("{} is {}, but must be above {} and at most {}", name,
                                      shown(*value), range.min, range.max)
                        : fmt::format("{} is {}, but must be between {} and {}", name,
                                      shown(*value), range.min, range.max),
               place(name)));
    return std::nullopt;
}

std::optional<std::int64_t> FieldReader::integer(std::string_view name, std::int64_t min,
                                                 std::int64_t max) {
    const json::value* value = find(name);
    if (!value) return std::nullopt;
    const std::optional<std::int64_t> number = as_integer(*value);
    if (!number && !value->is_uint64()) {
        fail_type(name, "an integer", *value);
        return std::nullopt;
    }
    if (number && *number >= min && *number <= max) return number;
    fail(
        Error(ErrorCode::kOutOfRange,
              fmt::format("{} is {}, but must be between {} and {}", name, shown(*value), min, max),
              place(name)));
    return std::nullopt;
}

std::optional<bool> FieldReader::boolean(std::string_view name) {
    const json::value* value = find(name);
    if (!value) return std::nullopt;
    if (value->is_bool()) return value->get_bool();
    fail_type(name, "true or false", *value);
    return std::nullopt;
}

std::optional<std::string> FieldReader::string(std::string_view name) {
    const json::value* value = find(name);
    if (!value) return std::nullopt;
    if (value->is_string()) return std::string(value->get_string());
    fail_type(name, "a string", *value);
    return std::nullopt;
}

const json::array* FieldReader::array(std::string_view name) {
    const json::value* value = find(name);
    if (!value) return nullptr;
    if (value->is_array()) return &value->get_array();
    fail_type(name, "an array", *value);
    return nullptr;
}

const json::object* FieldReader::object(std::string_view name) {
    const json::value* value = find(name);
    if (!value) return nullptr;
    if (value->is_object()) return &value->get_object();
    fail_type(name, "an object", *value);
    return nullptr;
}

}  // namespace sluice::protocol
