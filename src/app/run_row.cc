#include "app/run_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <random>

#include "base/hash.h"
#include "base/nearest.h"
#include "gateway/model_vocabulary.h"
#include "protocol/chat_request.h"
#include "protocol/errors.h"
#include "protocol/json_fields.h"
#include "protocol/prompt_tokens.h"
#include "protocol/refused_fields.h"
#include "protocol/sampling_fields.h"
#include "text/utf8.h"

namespace sluice::app {

namespace json = boost::json;
using protocol::FieldReader;

namespace {

constexpr std::uint64_t kSeedMask = (std::uint64_t{1} << 53) - 1;

constexpr auto kRowFields = std::to_array<std::string_view>(
    {"id", "prompt", "messages", "input_ids", "sampling_params", "thinking", "reasoning_effort"});

/// What of a row belongs to the conversation; tools and formats are there to be refused by name.
constexpr auto kChatFields = std::to_array<std::string_view>(
    {"messages", "thinking", "reasoning_effort", "tools", "tool_choice", "response_format"});

/// The names of vLLM, SGLang and our own port.
constexpr auto kSamplingFields = std::to_array<std::string_view>(
    {"max_tokens", "max_new_tokens", "min_tokens", "min_new_tokens", "temperature", "top_p",
     "top_k", "min_p", "seed", "frequency_penalty", "presence_penalty", "repetition_penalty",
     "logit_bias", "stop", "stop_token_ids", "ignore_eos", "n"});

bool contains(std::span<const std::string_view> names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

/// Data sets carry columns of their own, which is fine; what looks like a slip is not.
std::optional<Error> strange_row_field(const json::object& row) {
    for (const auto& [key, value] : row) {
        const std::string_view name = key;
        if (contains(kRowFields, name) || contains(kChatFields, name)) continue;
        if (contains(kSamplingFields, name)) {
            return Error::invalid(fmt::format("{} belongs into sampling_params", name),
                                  std::string(name));
        }
        const std::string hint = did_you_mean(name, kRowFields);
        if (hint.empty()) continue;
        return Error::invalid(fmt::format("unknown field{}", hint), std::string(name));
    }
    return std::nullopt;
}

std::optional<Error> strange_sampling_field(const json::object& params) {
    if (auto refused = protocol::find_refused_field(params, protocol::Endpoint::kCompletions)) {
        return refused->within("sampling_params");
    }
    for (const auto& [key, value] : params) {
        const std::string_view name = key;
        if (contains(kSamplingFields, name)) continue;
        return Error::invalid(fmt::format("unknown field{}", did_you_mean(name, kSamplingFields)),
                              fmt::format("sampling_params.{}", name));
    }
    return std::nullopt;
}

/// Gives a field its other name, unless both are there.
void rename(json::object& object, std::string_view from, std::string_view to) {
    const auto found = object.find(from);
    if (found == object.end() || object.contains(to)) return;
    json::value value = found->value();
    object.erase(found);
    object[to] = std::move(value);
}

Result<protocol::GenerationOptions> read_sampling(const json::object* given,
                                                  const RunDefaults& defaults) {
    protocol::GenerationOptions options;
    options.max_tokens = defaults.max_tokens;
    options.sampling.temperature = defaults.temperature;
    options.sampling.top_p = defaults.top_p;
    options.sampling.top_k = defaults.top_k;
    options.sampling.min_p = defaults.min_p;
    if (!given) return options;
    if (auto error = strange_sampling_field(*given)) return std::unexpected(*std::move(error));
    json::object params = *given;
    rename(params, "max_new_tokens", "max_tokens");
    rename(params, "min_new_tokens", "min_tokens");
    FieldReader reader(params, "sampling_params");
    protocol::read_generation_options(reader, protocol::Endpoint::kCompletions, options);
    if (reader.error()) return std::unexpected(*reader.error());
    return options;
}

Result<std::vector<TokenId>> read_ids(FieldReader& reader) {
    std::vector<TokenId> ids;
    const json::array& list = *reader.array("input_ids");
    ids.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto id = protocol::as_integer(list[i]);
        if (!id || *id < 0 || *id > std::numeric_limits<TokenId>::max()) {
            return std::unexpected(Error::invalid(
                fmt::format("this must be a token id, but is {}", protocol::shown(list[i])),
                fmt::format("input_ids[{}]", i)));
        }
        ids.push_back(static_cast<TokenId>(*id));
    }
    return ids;
}

/// The row as the body of a chat request.
std::string chat_body(const json::object& row, const RunDefaults& defaults) {
    json::object body;
    for (const std::string_view name : kChatFields) {
        if (const json::value* value = row.if_contains(name)) body[name] = *value;
    }
    if (const json::value* prompt = row.if_contains("prompt"); prompt && prompt->is_string()) {
        json::array messages;
        if (!defaults.system.empty()) {
            messages.push_back({{"role", "system"}, {"content", defaults.system}});
        }
        messages.push_back({{"role", "user"}, {"content", *prompt}});
        body["messages"] = std::move(messages);
    }
    return json::serialize(body);
}

Result<std::vector<TokenId>> chat_ids(const json::object& row, const RunDefaults& defaults,
                                      const RunModel& model) {
    const auto request = protocol::parse_chat_request(
        chat_body(row, defaults), {.thinking = defaults.thinking, .model = "run"});
    if (!request) return std::unexpected(request.error());
    const auto prompt = gateway::render(model.dialect, request->conversation);
    if (!prompt) return std::unexpected(prompt.error());
    return protocol::tokenize(*prompt, model.tokenizer);
}

Result<std::vector<TokenId>> read_prompt(const json::object& row, const RunDefaults& defaults,
                                         const RunModel& model) {
    FieldReader reader(row);
    int given = 0;
    for (const std::string_view name : {"prompt", "messages", "input_ids"}) {
        if (reader.find(name)) ++given;
    }
    if (given != 1) {
        return std::unexpected(Error::invalid(fmt::format(
            "a row has one of prompt, messages and input_ids, but this has {}", given)));
    }
    const auto prompt = reader.string("prompt");
    if (reader.find("input_ids")) (void)reader.array("input_ids");
    if (reader.error()) return std::unexpected(*reader.error());
    if (reader.find("input_ids")) return read_ids(reader);
    if (prompt && defaults.form == PromptForm::kRaw) {
        return model.tokenizer.encode_with_control(*prompt);
    }
    return chat_ids(row, defaults, model);
}

Result<RowRequest> read_request(const json::object& row, const RunDefaults& defaults,
                                const RunModel& model) {
    if (auto error = strange_row_field(row)) return std::unexpected(*std::move(error));
    FieldReader reader(row);
    const json::object* params = reader.object("sampling_params");
    if (reader.error()) return std::unexpected(*reader.error());
    auto options = read_sampling(params, defaults);
    if (!options) return std::unexpected(options.error());
    auto ids = read_prompt(row, defaults, model);
    if (!ids) return std::unexpected(ids.error());

    RowRequest request{.request = {}, .stop = std::move(options->stop), .has_seed = {}};
    request.has_seed = options->seed.has_value();
    request.request.sampling = std::move(options->sampling);
    const std::size_t context = model.engine->context_tokens();
    const std::size_t left = context - std::min(context, ids->size());
    request.request.sampling.max_new_tokens = options->max_tokens.value_or(
        static_cast<std::uint32_t>(std::clamp<std::size_t>(left, 1, kDefaultTokens)));
    request.request.input_ids = *std::move(ids);
    return request;
}

/// A string or an integer names a row.
std::optional<std::string> own_id(const json::object& row) {
    const json::value* id = row.if_contains("id");
    if (!id || !(id->is_string() || id->is_int64() || id->is_uint64())) return std::nullopt;
    return json::serialize(*id);
}

std::string_view name_of(engine::Finish finish) {
    switch (finish) {
        case engine::Finish::kStop: return "stop";
        case engine::Finish::kLength: return "length";
        case engine::Finish::kAborted: return "abort";
        case engine::Finish::kFailed:
        case engine::Finish::kHandedOver: break;  // Nobody here asks for that.
    }
    return "error";
}

}  // namespace

Row RowParser::parse(std::string_view line, std::uint64_t index) const {
    Row row{.id = fmt::format("{}", index), .request = std::unexpected(Error::invalid(""))};
    const auto document = protocol::parse_json_object(line);
    if (!document) {
        row.request = std::unexpected(document.error());
        return row;
    }
    const json::object& object = document->get_object();
    const json::value* id = object.if_contains("id");
    const auto own = own_id(object);
    if (own) row.id = *own;
    if (id && !id->is_null() && !own) {
        row.request = std::unexpected(Error::invalid("id must be a string or an integer", "id"));
        return row;
    }
    row.request = read_request(object, defaults_, model_);
    return row;
}

Result<std::string> prompt_row(std::string_view text) {
    if (!text::is_valid_utf8(text)) {
        return std::unexpected(Error::invalid("the prompt is not valid UTF-8"));
    }
    return json::serialize(json::object{{"prompt", text}});
}

std::uint64_t draw_seed() {
    std::random_device device;
    return ((std::uint64_t{device()} << 32) | device()) & kSeedMask;
}

std::uint64_t row_seed(std::uint64_t run_seed, std::string_view id) {
    const Sha256Digest digest =
        Sha256().update("sluice run row seed").update_u64(run_seed).update(id).finish();
    std::uint64_t seed = 0;
    for (std::size_t i = 0; i < sizeof(seed); ++i) seed |= std::uint64_t{digest[i]} << (8 * i);
    return seed & kSeedMask;
}

std::string answer_row(std::string_view id, std::uint64_t seed, const RunAnswer& answer) {
    const engine::Finish finish = answer.finish().value_or(engine::Finish::kAborted);
    if (finish == engine::Finish::kFailed) {
        return error_row(id, Error(ErrorCode::kInternal, answer.message()));
    }
    const std::uint64_t prompt = answer.prompt_tokens();
    const std::uint64_t completion = answer.ids().size();
    const json::object rest{{"text", answer.text()},
                            {"output_ids", json::value_from(answer.ids())},
                            {"finish_reason", name_of(finish)},
                            {"seed", seed},
                            {"usage",
                             {{"prompt_tokens", prompt},
                              {"completion_tokens", completion},
                              {"total_tokens", prompt + completion}}}};
    return fmt::format("{{\"id\":{},{}", id, json::serialize(rest).substr(1));
}

std::string error_row(std::string_view id, const Error& error) {
    return fmt::format("{{\"id\":{},{}", id,
                       protocol::to_json(protocol::to_api_error(error)).substr(1));
}

}  // namespace sluice::app
