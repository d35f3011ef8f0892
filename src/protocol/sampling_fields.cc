#include "protocol/sampling_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>

#include "base/limits.h"

namespace sluice::protocol {

namespace json = boost::json;

namespace {

constexpr std::int64_t kTokenIdMax = std::numeric_limits<TokenId>::max();
constexpr double kBiasMax = 100.0;

template <class To, class From>
void assign(To& to, const std::optional<From>& from) {
    if (from) to = static_cast<To>(*from);
}

/// Any 64-bit integer names a seed; a negative one by its two's complement.
std::optional<std::uint64_t> read_seed(FieldReader& reader) {
    const json::value* value = reader.find("seed");
    if (!value) return std::nullopt;
    if (value->is_uint64()) return value->get_uint64();
    if (const auto number = as_integer(*value)) return std::bit_cast<std::uint64_t>(*number);
    reader.fail_type("seed", "a 64-bit integer", *value);
    return std::nullopt;
}

std::optional<std::uint32_t> read_max_tokens(FieldReader& reader, Endpoint endpoint) {
    constexpr auto kMost = static_cast<std::int64_t>(limits::kMaxTokens);
    const auto older = reader.integer("max_tokens", 1, kMost);
    const auto newer = endpoint == Endpoint::kChat
                           ? reader.integer("max_completion_tokens", 1, kMost)
                           : std::nullopt;
    if (older && newer && *older != *newer) {
        reader.fail(Error::invalid(fmt::format("max_completion_tokens is {} and max_tokens is {}: "
                                               "give one of them, or both the same",
                                               *newer, *older),
                                   reader.place("max_completion_tokens")));
    }
    const auto wanted = newer ? newer : older;
    if (!wanted) return std::nullopt;
    return static_cast<std::uint32_t>(*wanted);
}

void add_stop(FieldReader& reader, const json::value& value, const std::string& place,
              std::vector<std::string>& stop) {
    if (!value.is_string()) {
        return reader.fail(Error::invalid(
            fmt::format("{} must be a string, but is {}", place, shown(value)), place));
    }
    const std::string_view text = value.get_string();
    if (text.empty()) {
        return reader.fail(Error::invalid(
            fmt::format("{} is empty, but needs at least one character", place), place));
    }
    if (text.size() > limits::kStopStringBytes) {
        return reader.fail(Error(ErrorCode::kOutOfRange,
                                 fmt::format("{} has {} bytes, but may have at most {}", place,
                                             text.size(), limits::kStopStringBytes),
                                 place));
    }
    // Once is enough, and twice would cost twice.
    if (std::ranges::find(stop, text) == stop.end()) stop.emplace_back(text);
}

/// The list under `name`, or nullptr if it has too many entries.
const json::array* read_bounded_array(FieldReader& reader, std::string_view name,
                                      std::size_t most) {
    const json::array* list = reader.array(name);
    if (!list || list->size() <= most) return list;
    reader.fail(
        Error(ErrorCode::kOutOfRange,
              fmt::format("{} has {} entries, but may have at most {}", name, list->size(), most),
              reader.place(name)));
    return nullptr;
}

void read_stop(FieldReader& reader, std::vector<std::string>& stop) {
    const json::value* value = reader.find("stop");
    if (!value) return;
    if (value->is_string()) return add_stop(reader, *value, "stop", stop);
    if (!value->is_array())
        return reader.fail_type("stop", "a string or an array of strings", *value);
    const json::array* list = read_bounded_array(reader, "stop", limits::kStopStrings);
    if (!list) return;
    for (std::size_t i = 0; i < list->size(); ++i) {
        add_stop(reader, (*list)[i], fmt::format("stop[{}]", i), stop);
    }
}

void read_stop_token_ids(FieldReader& reader, std::vector<TokenId>& ids) {
    const json::array* list = read_bounded_array(reader, "stop_token_ids", limits::kStopTokenIds);
    if (!list) return;
    for (std::size_t i = 0; i < list->size(); ++i) {
        const auto id = as_integer((*list)[i]);
        if (!id || *id < 0 || *id > kTokenIdMax) {
            const std::string place = fmt::format("stop_token_ids[{}]", i);
            return reader.fail(Error::invalid(
                fmt::format("{} must be a token id, but is {}", place, shown((*list)[i])), place));
        }
        ids.push_back(static_cast<TokenId>(*id));
    }
}

/// Only the one spelling "17", so that no token is named twice.
std::optional<TokenId> parse_token_id(std::string_view text) {
    TokenId id = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (code != std::errc() || end != text.data() + text.size() || id < 0) return std::nullopt;
    if (text.size() > 1 && text.front() == '0') return std::nullopt;
    return text.front() == '-' ? std::nullopt : std::optional(id);
}

void read_logit_bias(FieldReader& reader, std::vector<std::pair<TokenId, float>>& biases) {
    const json::object* object = reader.object("logit_bias");
    if (!object) return;
    if (object->size() > limits::kLogitBiasEntries) {
        return reader.fail(Error(ErrorCode::kOutOfRange,
                                 fmt::format("logit_bias has {} entries, but may have at most {}",
                                             object->size(), limits::kLogitBiasEntries),
                                 "logit_bias"));
    }
    FieldReader fields(*object, "logit_bias");
    for (const auto& [key, value] : *object) {
        const auto id = parse_token_id(key);
        if (!id) {
            const std::string shown_key = key.size() > 32 ? "long" : std::string(key);
            return reader.fail(Error::invalid(
                fmt::format("logit_bias needs token ids for keys, but one is \"{}\"", shown_key),
                "logit_bias"));
        }
        const auto bias = fields.number(key, {-kBiasMax, kBiasMax});
        if (bias) biases.emplace_back(*id, static_cast<float>(*bias));
        if (value.is_null()) fields.fail_type(key, "a number", value);
    }
    if (fields.error()) return reader.fail(*fields.error());
    std::ranges::sort(biases);  // Equal requests are equal, whatever the order of their keys.
}

void read_stream_options(FieldReader& reader, GenerationOptions& options) {
    assign(options.stream, reader.boolean("stream"));
    const json::object* object = reader.object("stream_options");
    if (!object) return;
    FieldReader fields(*object, "stream_options");
    assign(options.include_usage, fields.boolean("include_usage"));
    if (fields.error()) reader.fail(*fields.error());
}

void read_count(FieldReader& reader) {
    const auto count = reader.integer("n", 1, 128);
    if (count.value_or(1) == 1) return;
    reader.fail(Error::unsupported(
        fmt::format("n is {}, but only one answer a request is supported yet", *count),
        reader.place("n")));
}

void read_numbers(FieldReader& reader, GenerationOptions& options) {
    using enum Range::Lower;
    constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
    SamplingParams& sampling = options.sampling;
    assign(sampling.temperature, reader.number("temperature", {0.0, 2.0}));
    assign(sampling.top_p, reader.number("top_p", {0.0, 1.0, kExcluded}));
    if (reader.find("temperature")) options.temperature = sampling.temperature;
    if (reader.find("top_p")) options.top_p = sampling.top_p;
    // vLLM's -1 and 0 both turn it off.
    assign(sampling.top_k, reader.integer("top_k", -1, kInt32Max));
    sampling.top_k = std::max(sampling.top_k, 0);
    assign(sampling.min_p, reader.number("min_p", {0.0, 1.0}));
    assign(sampling.frequency_penalty, reader.number("frequency_penalty", {-2.0, 2.0}));
    assign(sampling.presence_penalty, reader.number("presence_penalty", {-2.0, 2.0}));
    assign(sampling.repetition_penalty, reader.number("repetition_penalty", {0.0, 2.0, kExcluded}));
    options.seed = read_seed(reader);
    sampling.seed = options.seed.value_or(0);
}

void read_lengths(FieldReader& reader, Endpoint endpoint, GenerationOptions& options) {
    SamplingParams& sampling = options.sampling;
    if (const auto given = read_max_tokens(reader, endpoint)) options.max_tokens = given;
    if (options.max_tokens) sampling.max_new_tokens = *options.max_tokens;
    assign(sampling.min_new_tokens,
           reader.integer("min_tokens", 0, static_cast<std::int64_t>(limits::kMaxTokens)));
    assign(sampling.ignore_eos, reader.boolean("ignore_eos"));
    if (options.max_tokens && sampling.min_new_tokens > *options.max_tokens) {
        reader.fail(
            Error(ErrorCode::kOutOfRange,
                  fmt::format("min_tokens is {}, but must be at most max_tokens, which is {}",
                              sampling.min_new_tokens, *options.max_tokens),
                  reader.place("min_tokens")));
    }
}

void read_model(FieldReader& reader, GenerationOptions& options) {
    const auto model = reader.string("model");
    if (!model) return;
    if (model->empty()) reader.fail(Error::invalid("model is empty", reader.place("model")));
    options.model = *model;
}

}  // namespace

void read_generation_options(FieldReader& reader, Endpoint endpoint, GenerationOptions& options) {
    read_model(reader, options);
    read_count(reader);
    read_numbers(reader, options);
    read_lengths(reader, endpoint, options);
    read_stop(reader, options.stop);
    read_stop_token_ids(reader, options.sampling.stop_token_ids);
    read_logit_bias(reader, options.sampling.logit_bias);
    read_stream_options(reader, options);
    assign(options.prompt_cache_key, reader.string("prompt_cache_key"));
    assign(options.user, reader.string("user"));
}

}  // namespace sluice::protocol
