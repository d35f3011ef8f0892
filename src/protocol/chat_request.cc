#include "protocol/chat_request.h"

#include <fmt/format.h>

#include "base/limits.h"
#include "protocol/json_fields.h"
#include "protocol/message_fields.h"
#include "protocol/refused_fields.h"
#include "protocol/sampling_fields.h"

namespace sluice::protocol {

namespace json = boost::json;

namespace {

struct NamedEffort {
    std::string_view name;
    EffortLevel level;
};

/// DeepSeek's own reading of OpenAI's ladder.
constexpr NamedEffort kEfforts[] = {
    {"minimal", EffortLevel::kLow}, {"low", EffortLevel::kLow},     {"medium", EffortLevel::kHigh},
    {"high", EffortLevel::kHigh},   {"xhigh", EffortLevel::kXhigh}, {"max", EffortLevel::kMax},
    {"ultra", EffortLevel::kMax},
};

/// Sets the effort. "none" turns thinking off, every other value turns it on.
void read_effort(FieldReader& reader, Conversation& conversation) {
    const json::value* value = reader.find("reasoning_effort");
    if (!value) return;
    if (value->is_number()) {
        const auto number = reader.integer("reasoning_effort", kEffortMin, kEffortMax);
        if (number) conversation.effort = static_cast<int>(*number);
        conversation.thinking = Thinking::kOn;
        return;
    }
    const auto name = reader.string("reasoning_effort");
    if (!name) return;
    if (*name == "none") {
        conversation.thinking = Thinking::kOff;
        return;
    }
    for (const NamedEffort& effort : kEfforts) {
        if (*name != effort.name) continue;
        conversation.effort = effort.level;
        conversation.thinking = Thinking::kOn;
        return;
    }
    reader.fail_type(
        "reasoning_effort",
        "none, minimal, low, medium, high, xhigh, max, ultra or an integer from 1 to 100", *value);
}

/// `thinking` decides before `reasoning_effort` does.
void read_thinking(FieldReader& reader, Conversation& conversation) {
    read_effort(reader, conversation);
    const json::object* object = reader.object("thinking");
    if (!object) return;
    FieldReader fields(*object, "thinking");
    const auto type = fields.string("type");
    if (fields.find("budget_tokens")) {
        fields.fail(Error::unsupported("budget_tokens is not supported yet",
                                       fields.place("budget_tokens")));
    } else if (!type) {
        fields.fail(Error::invalid("type is missing", fields.place("type")));
    } else if (*type == "enabled" || *type == "adaptive") {
        conversation.thinking = Thinking::kOn;
    } else if (*type == "disabled") {
        conversation.thinking = Thinking::kOff;
    } else {
        fields.fail_type("type", "enabled, adaptive or disabled", *fields.find("type"));
    }
    if (fields.error()) reader.fail(*fields.error());
}

void read_logprobs(FieldReader& reader, GenerationOptions& options) {
    options.logprobs = reader.boolean("logprobs").value_or(false);
    const auto top = reader.integer("top_logprobs", 0, limits::kTopLogprobs);
    if (!top) return;
    if (!options.logprobs && *top > 0) {
        reader.fail(
            Error::invalid(fmt::format("top_logprobs is {}, but needs logprobs to be true", *top),
                           "top_logprobs"));
    }
    options.top_logprobs = static_cast<std::uint32_t>(*top);
}

void require_model(FieldReader& reader, const ChatDefaults& defaults, GenerationOptions& options) {
    if (!options.model.empty()) return;
    options.model = defaults.model;
    if (options.model.empty()) reader.fail(Error::invalid("model is missing", "model"));
}

}  // namespace

Result<ChatRequest> parse_chat_request(std::string_view body, const ChatDefaults& defaults) {
    const auto document = parse_json_object(body);
    if (!document) return std::unexpected(document.error());
    const json::object& object = document->get_object();
    if (auto error = find_refused_field(object, Endpoint::kChat)) {
        return std::unexpected(*std::move(error));
    }

    ChatRequest request;
    request.conversation.thinking = defaults.thinking;
    FieldReader reader(object);
    read_messages(reader, request.conversation.messages);
    read_thinking(reader, request.conversation);
    read_generation_options(reader, Endpoint::kChat, request.options);
    read_logprobs(reader, request.options);
    require_model(reader, defaults, request.options);
    if (reader.error()) return std::unexpected(*reader.error());
    return request;
}

}  // namespace sluice::protocol
