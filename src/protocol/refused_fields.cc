#include "protocol/refused_fields.h"

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <string_view>

#include "protocol/json_fields.h"

namespace sluice::protocol {

namespace json = boost::json;

namespace {

/// The value that asks for nothing; null always does.
enum class Passes : std::uint8_t { kNothing, kFalse, kTrue, kEmpty, kZero, kOne };

struct RefusedField {
    std::string_view name;
    Passes passes;
};

constexpr auto kEverywhere = std::to_array<RefusedField>({
    {"best_of", Passes::kOne},
    {"use_beam_search", Passes::kFalse},
    {"length_penalty", Passes::kOne},
    {"logits_processors", Passes::kEmpty},
    {"custom_logit_processor", Passes::kNothing},
    {"prompt_logprobs", Passes::kNothing},
    {"echo", Passes::kFalse},
    {"suffix", Passes::kEmpty},
    {"truncate_prompt_tokens", Passes::kNothing},
    {"bad_words", Passes::kEmpty},
    {"allowed_token_ids", Passes::kNothing},
    {"include_stop_str_in_output", Passes::kFalse},
    {"no_stop_trim", Passes::kFalse},
    {"stop_regex", Passes::kEmpty},
    {"skip_special_tokens", Passes::kTrue},
    {"return_tokens_as_token_ids", Passes::kFalse},
    {"return_token_ids", Passes::kFalse},
    {"structured_outputs", Passes::kEmpty},
    {"structural_tag", Passes::kEmpty},
    {"guided_json", Passes::kNothing},
    {"guided_regex", Passes::kNothing},
    {"guided_choice", Passes::kNothing},
    {"guided_grammar", Passes::kNothing},
    {"guided_decoding_backend", Passes::kNothing},
    {"guided_whitespace_pattern", Passes::kNothing},
    {"json_schema", Passes::kEmpty},
    {"regex", Passes::kEmpty},
    {"ebnf", Passes::kEmpty},
    {"grammar", Passes::kEmpty},
    {"typical_p", Passes::kOne},
    {"mirostat", Passes::kZero},
    {"dry_multiplier", Passes::kZero},
    {"xtc_probability", Passes::kZero},
    {"top_a", Passes::kZero},
    {"lora_path", Passes::kNothing},
    {"session_params", Passes::kNothing},
    {"kv_transfer_params", Passes::kNothing},
    {"vllm_xargs", Passes::kEmpty},
});

constexpr auto kChatOnly = std::to_array<RefusedField>({
    {"tools", Passes::kEmpty},
    {"functions", Passes::kEmpty},
    {"audio", Passes::kNothing},
    {"prediction", Passes::kNothing},
    {"web_search_options", Passes::kNothing},
    {"documents", Passes::kEmpty},
    {"chat_template", Passes::kNothing},
    {"chat_template_kwargs", Passes::kEmpty},
    {"mm_processor_kwargs", Passes::kEmpty},
    {"add_generation_prompt", Passes::kTrue},
    {"continue_final_message", Passes::kFalse},
    {"add_special_tokens", Passes::kFalse},
    {"include_reasoning", Passes::kTrue},
    {"separate_reasoning", Passes::kTrue},
    {"thinking_budget", Passes::kNothing},
    {"thinking_token_budget", Passes::kNothing},
});

bool is_number(const json::value& value, double wanted) {
    return value.is_number() && value.to_number<double>() == wanted;
}

bool is_empty(const json::value& value) {
    if (value.is_string()) return value.get_string().empty();
    if (value.is_array()) return value.get_array().empty();
    return value.is_object() && value.get_object().empty();
}

bool asks_for_nothing(const json::value& value, Passes passes) {
    if (value.is_null()) return true;
    switch (passes) {
        case Passes::kNothing: return false;
        case Passes::kFalse: return value.is_bool() && !value.get_bool();
        case Passes::kTrue: return value.is_bool() && value.get_bool();
        case Passes::kEmpty: return is_empty(value);
        case Passes::kZero: return is_number(value, 0.0);
        case Passes::kOne: return is_number(value, 1.0);
    }
    return false;
}

Error refused(std::string_view name, std::string_view why = {}) {
    return Error::unsupported(
        fmt::format("{} is not supported yet{}{}", name, why.empty() ? "" : ": ", why),
        std::string(name));
}

template <std::size_t kSize>
std::optional<Error> find_in(const std::array<RefusedField, kSize>& table,
                             const json::object& body) {
    for (const RefusedField& field : table) {
        const json::value* value = body.if_contains(field.name);
        if (value && !asks_for_nothing(*value, field.passes)) return refused(field.name);
    }
    return std::nullopt;
}

/// `name` may be one of the strings that ask for what happens anyway.
std::optional<Error> refuse_unless(const json::object& body, std::string_view name,
                                   std::initializer_list<std::string_view> passing) {
    const json::value* value = body.if_contains(name);
    if (!value || value->is_null()) return std::nullopt;
    for (const std::string_view word : passing) {
        if (value->is_string() && value->get_string() == word) return std::nullopt;
    }
    return refused(name, fmt::format("only {} is", fmt::join(passing, " or ")));
}

std::optional<Error> find_refused_format(const json::object& body) {
    const json::value* format = body.if_contains("response_format");
    if (!format || format->is_null()) return std::nullopt;
    const json::value* type =
        format->is_object() ? format->get_object().if_contains("type") : nullptr;
    if (!type || !type->is_string()) {
        return Error::invalid("response_format must be an object with a string in type",
                              "response_format");
    }
    if (type->get_string() == "text") return std::nullopt;
    return refused("response_format", "only type \"text\" is");
}

std::optional<Error> find_refused_modality(const json::object& body) {
    const json::value* modalities = body.if_contains("modalities");
    if (!modalities || modalities->is_null()) return std::nullopt;
    const json::array* list = modalities->if_array();
    if (list && list->size() == 1 && (*list)[0].is_string() && (*list)[0].get_string() == "text") {
        return std::nullopt;
    }
    return refused("modalities", "only [\"text\"] is");
}

}  // namespace

std::optional<Error> find_refused_field(const json::object& body, Endpoint endpoint) {
    if (auto error = find_in(kEverywhere, body)) return error;
    if (auto error = find_refused_format(body)) return error;
    if (endpoint == Endpoint::kCompletions) return std::nullopt;
    if (auto error = find_in(kChatOnly, body)) return error;
    if (auto error = find_refused_modality(body)) return error;
    if (auto error = refuse_unless(body, "tool_choice", {"none", "auto"})) return error;
    if (auto error = refuse_unless(body, "function_call", {"none", "auto"})) return error;
    return refuse_unless(body, "verbosity", {"medium"});
}

}  // namespace sluice::protocol
