#include "protocol/upstream_chunk.h"

#include <simdjson.h>

#include <utility>

namespace sluice::protocol {
namespace {

namespace od = simdjson::ondemand;

constexpr std::size_t kKeptBytes = 64 * 1024;

/// What a value says, or nothing: a wrong type is as good as an absent field.
std::string_view text_of(od::value& value) {
    std::string_view text;
    return value.get_string().get(text) == simdjson::SUCCESS ? text : std::string_view();
}

bool is_string(od::value& value) {
    od::json_type type{};
    return value.type().get(type) == simdjson::SUCCESS && type == od::json_type::string;
}

/// Calls `take(key, value)` for each field; false if the JSON is broken.
template <class Take>
bool each_field(od::object object, Take&& take) {
    for (auto field : object) {
        std::string_view key;
        od::value value;
        if (field.unescaped_key().get(key) != simdjson::SUCCESS) return false;
        if (field.value().get(value) != simdjson::SUCCESS) return false;
        if (!take(key, value)) return false;
    }
    return true;
}

class ChunkReader {
public:
    explicit ChunkReader(ChunkDetail detail) : with_content_(detail == ChunkDetail::kContent) {}

    UpstreamChunk read(simdjson::padded_string_view json) {
        json_ = json.data();
        thread_local od::parser kept;
        od::parser once;  // What a huge answer needs is not kept.
        od::parser& parser = json.size() > kKeptBytes ? once : kept;
        od::document document;
        od::object root;
        if (parser.iterate(json).get(document) != simdjson::SUCCESS) return {};
        if (document.get_object().get(root) != simdjson::SUCCESS) return {};
        chunk_.is_object = each_field(
            root, [this](std::string_view key, od::value& value) { return take(key, value); });
        return chunk_.is_object ? std::move(chunk_) : UpstreamChunk{};
    }

private:
    bool take(std::string_view key, od::value& value) {
        if (key == "choices") return take_choices(value);
        if (key == "usage") return take_usage(value);
        if (key == "error") return take_error(value);
        if (key == "system_fingerprint" && is_string(value))
            chunk_.system_fingerprint = text_of(value);
        if (key == "model" && is_string(value)) take_model(value);
        return true;
    }

    void take_model(od::value& value) {
        std::string_view token = value.raw_json_token();  // Up to what follows it.
        token = token.substr(0, token.rfind('"') + 1);
        chunk_.model_value = {.begin = static_cast<std::size_t>(token.data() - json_),
                              .size = token.size()};
        chunk_.model = text_of(value);
    }

    bool take_error(od::value& value) {
        od::json_type type{};
        if (value.type().get(type) != simdjson::SUCCESS) return false;
        if (type == od::json_type::null) return true;
        chunk_.has_error = true;
        if (type == od::json_type::string) chunk_.error_message = text_of(value);
        od::object error;
        if (type != od::json_type::object || value.get_object().get(error) != simdjson::SUCCESS)
            return true;
        return each_field(error, [this](std::string_view key, od::value& field) {
            if (key == "message" && is_string(field)) chunk_.error_message = text_of(field);
            return true;
        });
    }

    bool take_usage(od::value& value) {
        od::object usage;
        if (value.get_object().get(usage) != simdjson::SUCCESS) return true;
        chunk_.usage.emplace();
        return each_field(usage, [this](std::string_view key, od::value& field) {
            if (key == "prompt_tokens") take_number(field, chunk_.usage->prompt_tokens);
            if (key == "completion_tokens") take_number(field, chunk_.usage->completion_tokens);
            if (key == "prompt_tokens_details")
                return take_detail(field, "cached_tokens", chunk_.usage->cached_tokens);
            if (key == "completion_tokens_details")
                return take_detail(field, "reasoning_tokens", chunk_.usage->reasoning_tokens);
            return true;
        });
    }

    static void take_number(od::value& value, std::uint64_t& number) {
        std::uint64_t read = 0;
        if (value.get_uint64().get(read) == simdjson::SUCCESS) number = read;
    }

    static bool take_detail(od::value& value, std::string_view name, std::uint64_t& number) {
        od::object detail;
        if (value.get_object().get(detail) != simdjson::SUCCESS) return true;
        return each_field(detail, [&](std::string_view key, od::value& field) {
            if (key == name) take_number(field, number);
            return true;
        });
    }

    bool take_choices(od::value& value) {
        od::array choices;
        if (value.get_array().get(choices) != simdjson::SUCCESS) return true;
        for (auto element : choices) {
            od::value each;
            od::object choice;
            if (element.get(each) != simdjson::SUCCESS) return false;
            const bool first = !chunk_.has_choices;
            chunk_.has_choices = true;
            if (each.get_object().get(choice) != simdjson::SUCCESS) continue;
            const bool good = each_field(choice, [&](std::string_view key, od::value& field) {
                return take_choice(key, field, first);
            });
            if (!good) return false;
        }
        return true;
    }

    bool take_choice(std::string_view key, od::value& value, bool first) {
        if (key == "delta" || key == "message") return take_message(value, first);
        if (!is_string(value)) return true;
        if (key == "finish_reason" && first) chunk_.finish_reason = text_of(value);
        if (key == "text") take_words(value, first ? &chunk_.text : nullptr);
        return true;
    }

    bool take_message(od::value& value, bool first) {
        od::object message;
        if (value.get_object().get(message) != simdjson::SUCCESS) return true;
        return each_field(message, [&](std::string_view key, od::value& field) {
            if (key == "tool_calls") return take_tool_calls(field, first);
            if (!is_string(field)) return true;
            if (key == "content") take_words(field, first ? &chunk_.text : nullptr);
            // DeepSeek's and vLLM's older name, and vLLM's newer one.
            if (key == "reasoning_content" || key == "reasoning")
                take_words(field, first ? &chunk_.reasoning : nullptr);
            return true;
        });
    }

    /// An empty text is no output: many engines send one with the role.
    void take_words(od::value& value, std::string* to) {
        if (!with_content_) {
            chunk_.has_output = chunk_.has_output || !value.raw_json_token().starts_with("\"\"");
            return;
        }
        const std::string_view words = text_of(value);
        chunk_.has_output = chunk_.has_output || !words.empty();
        if (to != nullptr) to->append(words);
    }

    bool take_tool_calls(od::value& value, bool first) {
        od::array calls;
        if (value.get_array().get(calls) != simdjson::SUCCESS) return true;
        std::uint64_t position = 0;
        for (auto element : calls) {
            od::value each;
            od::object call;
            if (element.get(each) != simdjson::SUCCESS) return false;
            chunk_.has_output = true;
            if (!with_content_ || !first) continue;
            if (each.get_object().get(call) != simdjson::SUCCESS) continue;
            UpstreamToolCall read{.index = position++};
            const bool good = each_field(call, [&](std::string_view key, od::value& field) {
                if (key == "index") take_number(field, read.index);
                if (key == "id" && is_string(field)) read.id = text_of(field);
                return key != "function" || take_function(field, read);
            });
            if (!good) return false;
            chunk_.tool_calls.push_back(std::move(read));
        }
        return true;
    }

    static bool take_function(od::value& value, UpstreamToolCall& call) {
        od::object function;
        if (value.get_object().get(function) != simdjson::SUCCESS) return true;
        return each_field(function, [&](std::string_view key, od::value& field) {
            if (key == "name" && is_string(field)) call.name = text_of(field);
            if (key == "arguments" && is_string(field)) call.arguments = text_of(field);
            return true;
        });
    }

    bool with_content_;
    const char* json_ = nullptr;
    UpstreamChunk chunk_;
};

}  // namespace

UpstreamChunk read_upstream_chunk(std::string_view json, ChunkDetail detail) {
    // Reused, because a stream's events are small and many.
    thread_local std::string padded;
    padded.assign(json);
    padded.append(simdjson::SIMDJSON_PADDING, '\0');
    UpstreamChunk chunk = ChunkReader(detail).read(
        simdjson::padded_string_view(padded.data(), json.size(), padded.size()));
    if (json.size() > kKeptBytes) padded = {};
    return chunk;
}

}  // namespace sluice::protocol
