#include "protocol/request_outline.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <span>

#include "base/limits.h"

namespace sluice::protocol {
namespace {

namespace od = simdjson::ondemand;

static_assert(limits::kBodySlackBytes >= simdjson::SIMDJSON_PADDING);

/// Enough of a text to know it again by.
constexpr std::size_t kOpeningBytes = 16 * 1024;
constexpr std::size_t kKeptBodyBytes = 2 * 1024 * 1024;

std::unexpected<Error> wrong(std::string_view name, std::string_view wanted) {
    return std::unexpected(
        Error::invalid(fmt::format("{} must be {}", name, wanted), std::string(name)));
}

std::unexpected<Error> not_json(simdjson::error_code code) {
    return std::unexpected(Error::invalid(
        fmt::format("the body is not valid JSON: {}", simdjson::error_message(code))));
}

/// The value's text as it stands in the body, without the blanks behind it.
std::string_view trimmed(std::string_view token) {
    const std::size_t last = token.find_last_not_of(" \t\r\n");
    return token.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

class OutlineReader {
public:
    explicit OutlineReader(simdjson::padded_string_view body) : body_(body) {}

    Result<RequestOutline> read() {
        thread_local od::parser kept;
        od::parser once;  // What a huge body needs is not kept.
        od::parser& parser = body_.size() > kKeptBodyBytes ? once : kept;
        od::document document;
        if (const auto error = parser.iterate(body_).get(document)) return not_json(error);
        od::object root;
        if (const auto error = document.get_object().get(root)) {
            if (error != simdjson::INCORRECT_TYPE) return not_json(error);
            return std::unexpected(Error::invalid("the body must be a JSON object"));
        }
        outline_.after_brace = std::string_view(body_).find('{') + 1;
        outline_.empty_object = true;
        for (auto field : root) {
            od::value value;
            std::string_view key;
            if (const auto error = field.unescaped_key().get(key)) return not_json(error);
            if (const auto error = field.value().get(value)) return not_json(error);
            outline_.empty_object = false;
            if (auto taken = take(key, value); !taken) return std::unexpected(taken.error());
        }
        // Beyond the last value there is no place any more.
        if (document.current_location().error() != simdjson::OUT_OF_BOUNDS)
            return std::unexpected(Error::invalid("the body goes on after its JSON"));
        settle();
        return std::move(outline_);
    }

private:
    [[nodiscard]] BodySpan span_of(std::string_view text) const {
        return {.begin = static_cast<std::size_t>(text.data() - body_.data()), .size = text.size()};
    }

    Result<void> take(std::string_view key, od::value& value) {
        if (key == "model") return take_model(value);
        if (key == "stream") return take_stream(value);
        if (key == "stream_options") return take_stream_options(value);
        if (key == "cache_salt") return take_cache_salt(value);
        if (key == "messages") return take_messages(value);
        if (key == "prompt") return take_prompt(value);
        if (key == "max_tokens" || key == "max_completion_tokens") return take_max_tokens(value);
        if (key == "prompt_cache_key") return take_text(value, outline_.prompt_cache_key);
        if (key == "user") return take_text(value, outline_.user);
        if (key == "seed") seeded_ = !is_null(value);
        if (key == "temperature") take_temperature(value);
        if (key == "tools") return take_tools(value);
        if (key == "response_format") return take_format(value);
        if (key == "structured_outputs") return take_structured_outputs(value);
        return {};
    }

    static bool is_null(od::value& value) {
        od::json_type type{};
        return value.type().get(type) == simdjson::SUCCESS && type == od::json_type::null;
    }

    Result<void> take_model(od::value& value) {
        if (std::exchange(saw_model_, true))
            return std::unexpected(Error::invalid("model is there twice", "model"));
        if (is_null(value)) return {};
        const std::string_view token = trimmed(value.raw_json_token());
        std::string_view name;
        if (value.get_string().get(name) != simdjson::SUCCESS) return wrong("model", "a string");
        outline_.model = name;
        outline_.model_value = span_of(token);
        return {};
    }

    Result<void> take_stream(od::value& value) {
        if (is_null(value)) return {};
        if (value.get_bool().get(outline_.stream) != simdjson::SUCCESS)
            return wrong("stream", "true or false");
        return {};
    }

    Result<void> take_stream_options(od::value& value) {
        if (std::exchange(saw_stream_options_, true)) {
            return std::unexpected(
                Error::invalid("stream_options is there twice", "stream_options"));
        }
        if (is_null(value)) {
            outline_.stream_options_value = span_of(trimmed(value.raw_json_token()));
            return {};
        }
        od::object options;
        if (value.get_object().get(options) != simdjson::SUCCESS)
            return wrong("stream_options", "an object");
        std::string_view whole;
        if (const auto error = options.raw_json().get(whole)) return not_json(error);
        outline_.stream_options_value = span_of(trimmed(whole));
        if (const auto error = options.reset().error()) return not_json(error);
        auto wanted = options.find_field_unordered("include_usage");
        if (wanted.error() != simdjson::SUCCESS) return {};
        od::value usage = wanted.value_unsafe();
        outline_.include_usage_value = span_of(trimmed(usage.raw_json_token()));
        if (!is_null(usage) && usage.get_bool().get(outline_.include_usage) != simdjson::SUCCESS) {
            return wrong("stream_options.include_usage", "true or false");
        }
        return {};
    }

    /// Of two, an engine might read the one that is not replaced.
    Result<void> take_cache_salt(od::value& value) {
        if (std::exchange(saw_cache_salt_, true))
            return std::unexpected(Error::invalid("cache_salt is there twice", "cache_salt"));
        od::json_type type{};
        if (const auto error = value.type().get(type)) return not_json(error);
        if (type == od::json_type::object || type == od::json_type::array)
            return wrong("cache_salt", "a string");
        outline_.cache_salt_value = span_of(trimmed(value.raw_json_token()));
        return {};
    }

    Result<void> take_max_tokens(od::value& value) {
        std::uint64_t tokens = 0;
        // A wrong one is the engine's to complain about: dialects differ in what they take.
        if (!is_null(value) && value.get_uint64().get(tokens) == simdjson::SUCCESS)
            outline_.max_tokens = tokens;
        return {};
    }

    void take_temperature(od::value& value) {
        double temperature = 1.0;
        if (!is_null(value) && value.get_double().get(temperature) == simdjson::SUCCESS)
            greedy_ = temperature == 0.0;
    }

    static Result<void> take_text(od::value& value, std::string& text) {
        std::string_view read;
        if (!is_null(value) && value.get_string().get(read) == simdjson::SUCCESS) {
            text = read.substr(0, limits::kConversationKeyBytes);
        }
        return {};
    }

    Result<void> take_tools(od::value& value) {
        od::array tools;
        std::string_view whole;
        if (is_null(value) || value.get_array().get(tools) != simdjson::SUCCESS) return {};
        if (const auto error = tools.raw_json().get(whole)) return not_json(error);
        whole = trimmed(whole);
        tools_ = whole.substr(1, whole.size() - 2).find_first_not_of(" \t\r\n") !=
                 std::string_view::npos;
        if (tools_) tools_text_ = whole;
        return {};
    }

    Result<void> take_format(od::value& value) {
        od::object format;
        if (is_null(value) || value.get_object().get(format) != simdjson::SUCCESS) return {};
        std::string_view type;
        if (format.find_field_unordered("type").get_string().get(type) != simdjson::SUCCESS)
            return {};
        structured_ = structured_ || type != "text";
        od::object schema;
        std::string_view whole;
        if (format.find_field_unordered("json_schema")
                .find_field_unordered("schema")
                .get_object()
                .get(schema) != simdjson::SUCCESS)
            return {};
        if (const auto error = schema.raw_json().get(whole)) return not_json(error);
        schema_text_ = trimmed(whole);
        return {};
    }

    /// A schema, an expression, a grammar or a choice: all of it says what the answer must follow.
    Result<void> take_structured_outputs(od::value& value) {
        if (is_null(value)) return {};
        structured_ = true;
        od::object rules;
        std::string_view whole;
        if (value.get_object().get(rules) != simdjson::SUCCESS) return {};
        if (const auto error = rules.raw_json().get(whole)) return not_json(error);
        schema_text_ = trimmed(whole);
        return {};
    }

    Result<void> take_prompt(od::value& value) {
        od::json_type type{};
        if (const auto error = value.type().get(type)) return not_json(error);
        if (type == od::json_type::array) {
            od::array prompts;
            std::string_view whole;
            if (const auto error = value.get_array().get(prompts)) return not_json(error);
            if (const auto error = prompts.raw_json().get(whole)) return not_json(error);
            add_opening(whole);
        } else {
            add_opening(value.raw_json_token());
        }
        return {};
    }

    Result<void> take_messages(od::value& value) {
        od::array messages;
        if (is_null(value)) return {};
        // What is wrong with messages the engine says better: it knows all of them.
        if (value.get_array().get(messages) != simdjson::SUCCESS) return {};
        for (auto element : messages) {
            od::value each;
            od::object message;
            if (const auto error = element.get(each)) return not_json(error);
            if (each.get_object().get(message) != simdjson::SUCCESS) continue;
            const auto is_user = take_message(message);
            if (!is_user) return std::unexpected(is_user.error());
            if (*is_user) return {};
        }
        return {};
    }

    /// Whether it is the user's.
    Result<bool> take_message(od::object& message) {
        std::string_view role;
        std::string_view content;
        for (auto field : message) {
            std::string_view key;
            od::value value;
            if (const auto error = field.unescaped_key().get(key)) return not_json(error);
            if (const auto error = field.value().get(value)) return not_json(error);
            if (key == "role") {
                if (value.get_string().get(role) != simdjson::SUCCESS) role = {};
            } else if (key == "content") {
                const auto raw = raw_content(value);
                if (!raw) return std::unexpected(raw.error());
                content = *raw;
            }
        }
        const bool is_user = role == "user";
        if (is_user || role == "system" || role == "developer") add_opening(content);
        return is_user;
    }

    /// As JSON: equal texts are equal JSON, from the same client at least.
    static Result<std::string_view> raw_content(od::value& value) {
        od::json_type type{};
        if (const auto error = value.type().get(type)) return not_json(error);
        if (type != od::json_type::array) return trimmed(value.raw_json_token());
        od::array parts;
        std::string_view whole;
        if (const auto error = value.get_array().get(parts)) return not_json(error);
        if (const auto error = parts.raw_json().get(whole)) return not_json(error);
        return trimmed(whole);
    }

    void add_opening(std::string_view text) {
        opening_ += text.substr(0, kOpeningBytes);
        opening_ += '\n';
        if (opening_.size() > 4 * kOpeningBytes) opening_.resize(4 * kOpeningBytes);
    }

    void settle() {
        outline_.opening = xxh3_128(std::as_bytes(std::span(opening_)));
        outline_.fixed = greedy_ || seeded_;
        if (const auto text = schema_text_.empty() ? tools_text_ : schema_text_; !text.empty()) {
            const Xxh128 digest = xxh3_128(std::as_bytes(std::span(text)));
            outline_.schema_digest = fmt::format("{:016x}{:016x}", digest.high, digest.low);
        }
        outline_.kind = tools_        ? RequestKind::kTools
                        : structured_ ? RequestKind::kJsonSchema
                        : seeded_     ? RequestKind::kSeeded
                                      : RequestKind::kText;
    }

    simdjson::padded_string_view body_;
    RequestOutline outline_;
    std::string opening_;
    std::string_view schema_text_;  ///< In the body.
    std::string_view tools_text_;
    bool saw_model_ = false;
    bool saw_stream_options_ = false;
    bool saw_cache_salt_ = false;
    bool seeded_ = false;
    bool greedy_ = false;
    bool structured_ = false;
    bool tools_ = false;
};

}  // namespace

Result<RequestOutline> read_outline(const std::string& body) {
    if (body.capacity() - body.size() >= simdjson::SIMDJSON_PADDING) {
        return OutlineReader(
                   simdjson::padded_string_view(body.data(), body.size(), body.capacity()))
            .read();
    }
    const simdjson::padded_string copy(body);
    return OutlineReader(copy).read();
}

std::string conversation_key(const RequestOutline& outline, std::string_view header,
                             std::string_view tenant) {
    const auto named = [](std::string_view kind, std::string_view name) {
        return fmt::format("{}:{}", kind, name.substr(0, limits::kConversationKeyBytes));
    };
    if (!header.empty()) return named("header", header);
    if (!outline.prompt_cache_key.empty()) return named("cache", outline.prompt_cache_key);
    if (!outline.user.empty()) return named("user", outline.user);
    const Xxh128 tenant_digest = xxh3_128(std::as_bytes(std::span(tenant)));
    std::string key = "opening:";
    append_hex(key, outline.opening.high ^ tenant_digest.high);
    append_hex(key, outline.opening.low ^ tenant_digest.low);
    return key;
}

}  // namespace sluice::protocol
