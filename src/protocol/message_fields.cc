#include "protocol/message_fields.h"

#include <fmt/format.h>

#include "base/limits.h"

namespace sluice::protocol {

namespace json = boost::json;

namespace {

std::optional<Role> read_role(FieldReader& fields) {
    const auto role = fields.string("role");
    if (!role) {
        fields.fail(Error::invalid("role is missing", fields.place("role")));
        return std::nullopt;
    }
    if (*role == "system" || *role == "developer") return Role::kSystem;
    if (*role == "user") return Role::kUser;
    if (*role == "assistant") return Role::kAssistant;
    if (*role == "latest_reminder") return Role::kLatestReminder;
    if (*role == "tool" || *role == "function") {
        fields.fail(Error::unsupported(fmt::format("role {} is not supported yet", *role),
                                       fields.place("role")));
        return std::nullopt;
    }
    fields.fail(
        Error::invalid("role must be system, developer, user, assistant, tool or "
                       "latest_reminder, but is " +
                           shown(*fields.find("role")),
                       fields.place("role")));
    return std::nullopt;
}

void read_part(FieldReader& fields, std::vector<ContentPart>& parts) {
    const auto type = fields.string("type");
    if (!type) return fields.fail(Error::invalid("type is missing", fields.place("type")));
    if (*type != "text") {
        return fields.fail(
            Error::unsupported(fmt::format("only parts of type text are supported yet, not {}",
                                           shown(*fields.find("type"))),
                               fields.place("type")));
    }
    auto text = fields.string("text");
    if (!text) return fields.fail(Error::invalid("text is missing", fields.place("text")));
    parts.push_back({PartKind::kText, *std::move(text), ImageDetail::kAuto});
}

void read_parts(FieldReader& fields, const json::array& list, std::vector<ContentPart>& parts) {
    for (std::size_t i = 0; i < list.size() && !fields.error(); ++i) {
        const std::string place = fmt::format("{}[{}]", fields.place("content"), i);
        const json::object* object = list[i].if_object();
        if (!object) {
            return fields.fail(Error::invalid(
                fmt::format("a content part must be an object, but is {}", shown(list[i])), place));
        }
        FieldReader part(*object, place);
        read_part(part, parts);
        if (part.error()) fields.fail(*part.error());
    }
}

void read_content(FieldReader& fields, Message& message) {
    const json::value* content = fields.find("content");
    if (!content) {
        return fields.fail(Error::invalid("content must be a string or an array of parts",
                                          fields.place("content")));
    }
    if (const json::string* text = content->if_string()) {
        message.parts.push_back({PartKind::kText, std::string(*text), ImageDetail::kAuto});
    } else if (const json::array* list = content->if_array()) {
        read_parts(fields, *list, message.parts);
    } else {
        fields.fail_type("content", "a string or an array of parts", *content);
    }
}

/// What only an assistant's message has.
void read_assistant(FieldReader& fields, Message& message) {
    if (const json::array* calls = fields.array("tool_calls")) {
        fields.fail(calls->empty()
                        ? Error::invalid("tool_calls is empty, but needs at least one call",
                                         fields.place("tool_calls"))
                        : Error::unsupported("tool calls are not supported yet",
                                             fields.place("tool_calls")));
    }
    for (const std::string_view name : {"function_call", "audio"}) {
        if (!fields.find(name)) continue;
        fields.fail(
            Error::unsupported(fmt::format("{} is not supported yet", name), fields.place(name)));
    }
    message.reasoning = fields.string("reasoning_content");
    message.prefix = fields.boolean("prefix").value_or(false);
}

Message read_message(FieldReader& fields) {
    Message message;
    const auto role = read_role(fields);
    if (!role) return message;
    message.role = *role;
    if (message.role == Role::kAssistant) read_assistant(fields, message);
    read_content(fields, message);
    return message;
}

}  // namespace

void read_messages(FieldReader& reader, std::vector<Message>& messages) {
    const json::array* list = reader.array("messages");
    if (!list || list->empty()) {
        return reader.fail(Error::invalid("messages needs at least one message", "messages"));
    }
    if (list->size() > limits::kMessages) {
        return reader.fail(Error(ErrorCode::kOutOfRange,
                                 fmt::format("messages has {} entries, but may have at most {}",
                                             list->size(), limits::kMessages),
                                 "messages"));
    }
    messages.reserve(list->size());
    for (std::size_t i = 0; i < list->size() && !reader.error(); ++i) {
        const std::string place = fmt::format("messages[{}]", i);
        const json::object* object = (*list)[i].if_object();
        if (!object) {
            return reader.fail(Error::invalid(
                fmt::format("a message must be an object, but is {}", shown((*list)[i])), place));
        }
        FieldReader fields(*object, place);
        messages.push_back(read_message(fields));
        if (fields.error()) return reader.fail(*fields.error());
        if (messages.back().prefix && i + 1 != list->size()) {
            return reader.fail(
                Error::invalid("prefix is only for the last message", fields.place("prefix")));
        }
    }
}

}  // namespace sluice::protocol
