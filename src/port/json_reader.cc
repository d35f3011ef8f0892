#include "port/json_reader.h"

#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/limits.h"
#include "port/generate.h"

namespace sluice::port {
namespace {

namespace json = boost::json;

constexpr std::size_t kStackBytes = 4096;

/// Boost's own number conversion is off by a few units in the last place, which is enough to change
/// a float; so numbers are converted again, from their text.
class Handler {
public:
    static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
    static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
    static constexpr std::size_t max_key_size = std::numeric_limits<std::size_t>::max();
    static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();
    using Text = json::string_view;
    using Code = json::error_code;

    explicit Handler(json::storage_ptr memory) : stack_({}, buffer_, sizeof(buffer_)) {
        stack_.reset(std::move(memory));
    }

    json::value release() { return stack_.release(); }

    bool on_document_begin(Code&) { return true; }
    bool on_document_end(Code&) { return true; }
    bool on_object_begin(Code&) { return true; }
    bool on_object_end(std::size_t count, Code&) { return stack_.push_object(count), true; }
    bool on_array_begin(Code&) { return true; }
    bool on_array_end(std::size_t count, Code&) { return stack_.push_array(count), true; }
    bool on_key_part(Text part, std::size_t, Code&) { return stack_.push_chars(part), true; }
    bool on_key(Text rest, std::size_t, Code&) { return stack_.push_key(rest), true; }
    bool on_string_part(Text part, std::size_t, Code&) { return stack_.push_chars(part), true; }
    bool on_string(Text rest, std::size_t, Code&) { return stack_.push_string(rest), true; }
    bool on_number_part(Text, Code&) { return true; }
    bool on_int64(std::int64_t number, Text, Code&) { return stack_.push_int64(number), true; }
    bool on_uint64(std::uint64_t number, Text, Code&) { return stack_.push_uint64(number), true; }
    bool on_double(double number, Text text, Code&) {
        float exact = 0.0F;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), exact);
        const bool whole = error == std::errc{} && end == text.data() + text.size();
        stack_.push_double(whole ? static_cast<double>(exact) : number);
        return true;
    }
    bool on_bool(bool flag, Code&) { return stack_.push_bool(flag), true; }
    bool on_null(Code&) { return stack_.push_null(), true; }
    bool on_comment_part(Text, Code&) { return true; }
    bool on_comment(Text, Code&) { return true; }

private:
    unsigned char buffer_[kStackBytes];
    json::value_stack stack_;
};

Result<json::value> parse_value(std::string_view text, json::storage_ptr memory) {
    json::parse_options options;
    options.max_depth = limits::kJsonDepth;
    json::basic_parser<Handler> parser(options, std::move(memory));
    json::error_code error;
    const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
    if (!error && read < text.size()) error = json::error::extra_data;
    if (error) {
        return std::unexpected(Error::invalid(
            fmt::format("this is not valid JSON at byte {}: {}", read, error.message())));
    }
    return parser.handler().release();
}

/// A whole number within [low, high] of T's own kind.
template <class T>
std::optional<T> whole_number(const json::value& value) {
    if (const std::int64_t* const number = value.if_int64()) {
        if (!std::in_range<T>(*number)) return std::nullopt;
        return static_cast<T>(*number);
    }
    if (const std::uint64_t* const number = value.if_uint64()) {
        if (!std::in_range<T>(*number)) return std::nullopt;
        return static_cast<T>(*number);
    }
    return std::nullopt;
}

bool is_whole(const json::value& value) { return value.is_int64() || value.is_uint64(); }

/// What stands there, short enough for a message.
std::string shown(const json::value& value) {
    switch (value.kind()) {
        case json::kind::int64: return fmt::format("{}", value.get_int64());
        case json::kind::uint64: return fmt::format("{}", value.get_uint64());
        case json::kind::double_: return fmt::format("{}", value.get_double());
        case json::kind::bool_: return value.get_bool() ? "true" : "false";
        case json::kind::string: return "a string";
        case json::kind::array: return "an array";
        case json::kind::object: return "an object";
        case json::kind::null: return "null";
    }
    return "something else";
}

template <class Wide, class T>
void read_whole(JsonFields& fields, const json::value* value, std::string_view name, T& out,
                Wide low, Wide high) {
    if (value == nullptr) return;
    const std::optional<Wide> number = whole_number<Wide>(*value);
    if (number && *number >= low && *number <= high) {
        out = static_cast<T>(*number);
        return;
    }
    fields.fail(name,
                fmt::format("this is {}, but must be a whole number from {} to {}", shown(*value),
                            low, high),
                is_whole(*value) ? ErrorCode::kOutOfRange : ErrorCode::kInvalid);
}

std::optional<Sha256Digest> as_digest(const json::value& value) {
    const json::string* const text = value.if_string();
    return text == nullptr ? std::nullopt : digest_from_hex({text->data(), text->size()});
}

constexpr const char* kDigestWanted = "this must be 64 lower-case hexadecimal digits";

}  // namespace

Result<const json::object*> JsonDocument::parse(std::string_view text) {
    try {
        Result<json::value> root = parse_value(text, &memory_);
        if (!root) return std::unexpected(root.error());
        root_ = *std::move(root);
    } catch (const std::exception& exception) {
        return std::unexpected(Error(ErrorCode::kExhausted,
                                     fmt::format("the JSON can't be held: {}", exception.what())));
    }
    if (!root_.is_object()) {
        return std::unexpected(
            Error::invalid(fmt::format("this is {}, but must be a JSON object", shown(root_))));
    }
    return &root_.get_object();
}

const json::value* JsonFields::find(std::string_view name) const {
    const json::value* const value = object_.if_contains({name.data(), name.size()});
    return value == nullptr || value->is_null() ? nullptr : value;
}

std::string JsonFields::place_of(std::string_view name) const {
    return place_.empty() ? std::string(name) : fmt::format("{}.{}", place_, name);
}

void JsonFields::fail(std::string_view name, std::string message, ErrorCode code) {
    if (!error_) error_ = Error(code, std::move(message), place_of(name));
}

void JsonFields::refuse(std::string_view name, std::string_view why) {
    if (find(name) != nullptr) fail(name, std::string(why), ErrorCode::kUnsupported);
}

void JsonFields::read(std::string_view name, bool& out) {
    const json::value* const value = find(name);
    if (value == nullptr) return;
    if (const bool* const flag = value->if_bool()) {
        out = *flag;
    } else {
        fail(name, fmt::format("this is {}, but must be true or false", shown(*value)));
    }
}

void JsonFields::read(std::string_view name, std::string& out, std::size_t bytes_max) {
    const json::value* const value = find(name);
    if (value == nullptr) return;
    const json::string* const text = value->if_string();
    if (text == nullptr) {
        fail(name, fmt::format("this is {}, but must be a string", shown(*value)));
    } else if (text->size() > bytes_max) {
        fail(name,
             fmt::format("this has {} bytes, but at most {} are allowed", text->size(), bytes_max),
             ErrorCode::kOutOfRange);
    } else {
        out.assign(text->data(), text->size());
    }
}

void JsonFields::read(std::string_view name, float& out, FloatRange range) {
    const json::value* const value = find(name);
    if (value == nullptr) return;
    const std::optional<float> number = as_float(*value);
    const bool low_enough = number && *number <= range.high;
    const bool high_enough =
        number && (range.low_is_allowed ? *number >= range.low : *number > range.low);
    if (low_enough && high_enough) {
        out = *number;
        return;
    }
    fail(name,
         fmt::format("this is {}, but must be a number {} {} and at most {}", shown(*value),
                     range.low_is_allowed ? "from" : "above", range.low, range.high),
         value->is_number() ? ErrorCode::kOutOfRange : ErrorCode::kInvalid);
}

void JsonFields::read(std::string_view name, std::uint64_t& out, std::uint64_t low,
                      std::uint64_t high) {
    read_whole<std::uint64_t>(*this, find(name), name, out, low, high);
}

void JsonFields::read(std::string_view name, std::uint32_t& out, std::uint64_t low,
                      std::uint64_t high) {
    read_whole<std::uint64_t>(*this, find(name), name, out, low, high);
}

void JsonFields::read(std::string_view name, std::int64_t& out, std::int64_t low,
                      std::int64_t high) {
    read_whole<std::int64_t>(*this, find(name), name, out, low, high);
}

void JsonFields::read(std::string_view name, std::int32_t& out, std::int64_t low,
                      std::int64_t high) {
    read_whole<std::int64_t>(*this, find(name), name, out, low, high);
}

void JsonFields::read_tokens(std::string_view name, std::vector<TokenId>& out,
                             std::size_t count_max, Need need) {
    const json::array* const tokens = array(name, count_max);
    if (tokens == nullptr) {
        if (need == Need::kRequired) fail(name, "this field is missing");
        return;
    }
    std::vector<TokenId> result;
    result.reserve(tokens->size());
    for (const json::value& value : *tokens) {
        const std::optional<TokenId> token = as_token(value);
        if (!token) {
            fail(fmt::format("{}[{}]", name, result.size()),
                 fmt::format("this is {}, but must be a token id", shown(value)));
            return;
        }
        result.push_back(*token);
    }
    out = std::move(result);
}

void JsonFields::read_digests(std::string_view name, std::vector<Sha256Digest>& out,
                              std::size_t count_max) {
    const json::array* const digests = array(name, count_max);
    if (digests == nullptr) return;
    out.clear();
    out.reserve(digests->size());
    for (const json::value& value : *digests) {
        const std::optional<Sha256Digest> digest = as_digest(value);
        if (!digest) return fail(fmt::format("{}[{}]", name, out.size()), kDigestWanted);
        out.push_back(*digest);
    }
}

void JsonFields::read_digest(std::string_view name, std::optional<Sha256Digest>& out) {
    const json::value* const value = find(name);
    if (value == nullptr) return;
    const std::optional<Sha256Digest> digest = as_digest(*value);
    if (!digest) return fail(name, kDigestWanted);
    out = digest;
}

void JsonFields::read_rid(std::string_view name, std::string& out) {
    std::string rid;
    read(name, rid, limits::kPortTextBytes);
    const bool digits_only = rid.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (rid.size() == kRidLength && digits_only) {
        out = std::move(rid);
        return;
    }
    fail(name, fmt::format("this must be {} lower-case hexadecimal digits", kRidLength));
}

void JsonFields::read_optional_rid(std::string_view name, std::string& out) {
    if (find(name) != nullptr) read_rid(name, out);
}

const json::object* JsonFields::object(std::string_view name, Need need) {
    const json::value* const value = find(name);
    if (value == nullptr) {
        if (need == Need::kRequired) fail(name, "this field is missing");
        return nullptr;
    }
    const json::object* const found = value->if_object();
    if (found == nullptr) {
        fail(name, fmt::format("this is {}, but must be an object", shown(*value)));
    }
    return found;
}

const json::array* JsonFields::array(std::string_view name, std::size_t count_max) {
    const json::value* const value = find(name);
    if (value == nullptr) return nullptr;
    const json::array* const found = value->if_array();
    if (found == nullptr) {
        fail(name, fmt::format("this is {}, but must be an array", shown(*value)));
        return nullptr;
    }
    if (found->size() > count_max) {
        fail(name,
             fmt::format("this has {} entries, but at most {} are allowed", found->size(),
                         count_max),
             ErrorCode::kOutOfRange);
        return nullptr;
    }
    return found;
}

std::optional<float> as_float(const json::value& value) {
    float number = 0.0F;
    if (const std::int64_t* const whole = value.if_int64()) {
        number = static_cast<float>(*whole);
    } else if (const std::uint64_t* const large = value.if_uint64()) {
        number = static_cast<float>(*large);
    } else if (const double* const fraction = value.if_double()) {
        // A conversion beyond float's range is undefined, so it is tested first.
        if (!(std::fabs(*fraction) <= std::numeric_limits<float>::max())) return std::nullopt;
        number = static_cast<float>(*fraction);
    } else {
        return std::nullopt;
    }
    return number;
}

std::optional<TokenId> as_token(const json::value& value) {
    const std::optional<TokenId> token = whole_number<TokenId>(value);
    return token && *token >= 0 ? token : std::nullopt;
}

}  // namespace sluice::port
