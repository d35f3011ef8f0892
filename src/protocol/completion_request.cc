#include "protocol/completion_request.h"

#include <fmt/format.h>

#include <limits>

#include "protocol/json_fields.h"
#include "protocol/refused_fields.h"
#include "protocol/sampling_fields.h"

namespace sluice::protocol {

namespace json = boost::json;

namespace {

constexpr std::int64_t kLegacyLogprobs = 5;

void read_ids(FieldReader& reader, const json::array& list, const std::string& place,
              CompletionRequest& request) {
    std::vector<TokenId> ids;
    ids.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto id = as_integer(list[i]);
        if (!id || *id < 0 || *id > std::numeric_limits<TokenId>::max()) {
            const std::string where = fmt::format("{}[{}]", place, i);
            return reader.fail(Error::invalid(
                fmt::format("{} must be a token id, but is {}", where, shown(list[i])), where));
        }
        ids.push_back(static_cast<TokenId>(*id));
    }
    request.prompt = std::move(ids);
}

/// A list is one prompt's ids, or a list of prompts.
void read_prompt_list(FieldReader& reader, const json::array& list, CompletionRequest& request) {
    if (list.empty()) return reader.fail(Error::invalid("prompt is empty", "prompt"));
    if (list[0].is_number()) return read_ids(reader, list, "prompt", request);
    if (list.size() > 1) {
        return reader.fail(Error::unsupported(
            fmt::format("prompt has {} prompts, but only one a request is supported yet",
                        list.size()),
            "prompt"));
    }
    if (const json::string* text = list[0].if_string()) {
        request.prompt = std::string(*text);
    } else if (const json::array* ids = list[0].if_array()) {
        if (ids->empty()) return reader.fail(Error::invalid("prompt[0] is empty", "prompt[0]"));
        read_ids(reader, *ids, "prompt[0]", request);
    } else {
        reader.fail(Error::invalid(
            fmt::format("prompt[0] must be a string or token ids, but is {}", shown(list[0])),
            "prompt[0]"));
    }
}

void read_prompt(FieldReader& reader, CompletionRequest& request) {
    const json::value* prompt = reader.find("prompt");
    if (!prompt) return reader.fail(Error::invalid("prompt is missing", "prompt"));
    if (const json::string* text = prompt->if_string()) {
        request.prompt = std::string(*text);
    } else if (const json::array* list = prompt->if_array()) {
        read_prompt_list(reader, *list, request);
    } else {
        reader.fail_type("prompt", "a string or an array of token ids", *prompt);
    }
}

/// Here `logprobs` is the number of alternatives; 0 still asks for the chosen token's.
void read_logprobs(FieldReader& reader, GenerationOptions& options) {
    const auto top = reader.integer("logprobs", 0, kLegacyLogprobs);
    if (!top) return;
    options.logprobs = true;
    options.top_logprobs = static_cast<std::uint32_t>(*top);
}

}  // namespace

Result<CompletionRequest> parse_completion_request(std::string_view body,
                                                   const CompletionDefaults& defaults) {
    const auto document = parse_json_object(body);
    if (!document) return std::unexpected(document.error());
    const json::object& object = document->get_object();
    if (auto error = find_refused_field(object, Endpoint::kCompletions)) {
        return std::unexpected(*std::move(error));
    }

    CompletionRequest request;
    FieldReader reader(object);
    read_prompt(reader, request);
    read_logprobs(reader, request.options);
    request.add_special_tokens = reader.boolean("add_special_tokens").value_or(true);
    request.options.max_tokens = kDefaultCompletionTokens;
    read_generation_options(reader, Endpoint::kCompletions, request.options);
    if (request.options.model.empty()) request.options.model = defaults.model;
    if (request.options.model.empty()) reader.fail(Error::invalid("model is missing", "model"));
    if (reader.error()) return std::unexpected(*reader.error());
    return request;
}

}  // namespace sluice::protocol
