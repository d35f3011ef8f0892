#include "protocol/dialect_v41.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "protocol/control_tokens.h"

namespace sluice::protocol {
namespace {

using MessageList = std::vector<const Message*>;

int effort_number(EffortLevel level, Profile profile) {
    const bool recipe = profile == Profile::kRecipe;
    switch (level) {
        case EffortLevel::kLow: return recipe ? 50 : 25;
        case EffortLevel::kHigh: return recipe ? 75 : 50;
        case EffortLevel::kXhigh: return 75;
        case EffortLevel::kMax: return 100;
    }
    return 75;
}

std::string effort_line(const Effort& effort, Profile profile) {
    const int* number = std::get_if<int>(&effort);
    return fmt::format(
        "Reasoning Effort: {} (range 1-100, the higher the value, the more thorough the "
        "reasoning)\n\n",
        number ? *number : effort_number(std::get<EffortLevel>(effort), profile));
}

std::string joined_text(const Message& message) {
    std::string text;
    for (std::size_t i = 0; i < message.parts.size(); ++i) {
        if (i > 0) text += kPartSeparator;
        text += message.parts[i].text;
    }
    return text;
}

bool has_text(const Message& message) {
    return message.parts.size() > 1 ||
           (message.parts.size() == 1 && !message.parts[0].text.empty());
}

/// The first mark in `text`, or an empty view at its end.
std::string_view find_grounding(std::string_view text) {
    constexpr std::string_view kOpening = "<｜";
    for (std::size_t at = text.find(kOpening); at != std::string_view::npos;
         at = text.find(kOpening, at + kOpening.size())) {
        for (const std::string_view mark : control::kGrounding) {
            if (text.substr(at).starts_with(mark)) return text.substr(at, mark.size());
        }
    }
    return text.substr(text.size());
}

/// Text of an assistant turn, with its grounding marks as tokens.
void add_assistant_text(Prompt& prompt, std::string_view text) {
    while (!text.empty()) {
        const std::string_view mark = find_grounding(text);
        const auto before = static_cast<std::size_t>(mark.data() - text.data());
        prompt.add_text(text.substr(0, before));
        if (!mark.empty()) prompt.add_control(mark, SegmentKind::kOptionalControl);
        text.remove_prefix(before + mark.size());
    }
}

std::optional<Error> check_message(const Message& message, bool last) {
    if (message.role == Role::kTool) {
        return Error::unsupported("tool results are not supported yet", "role");
    }
    if (!message.tool_calls.empty()) {
        return Error::unsupported("tool calls are not supported yet", "tool_calls");
    }
    for (std::size_t i = 0; i < message.parts.size(); ++i) {
        if (message.parts[i].kind == PartKind::kText) continue;
        return Error::unsupported("images are not supported yet", fmt::format("content[{}]", i));
    }
    if (message.prefix && !(last && message.role == Role::kAssistant)) {
        return Error::invalid("prefix is only for the last message, and for role assistant",
                              "prefix");
    }
    return std::nullopt;
}

std::optional<Error> check_conversation(const Conversation& conversation) {
    if (conversation.messages.empty()) {
        return Error::invalid("messages is empty, but a prompt needs at least one", "messages");
    }
    if (!conversation.tools.empty()) {
        return Error::unsupported("tools are not supported yet", "tools");
    }
    if (conversation.response_format.kind != FormatKind::kText) {
        return Error::unsupported("only format text is supported yet", "response_format");
    }
    const int* effort = std::get_if<int>(&conversation.effort);
    if (effort && (*effort < kEffortMin || *effort > kEffortMax)) {
        return Error(ErrorCode::kOutOfRange,
                     fmt::format("reasoning_effort is {}, but must be between {} and {}", *effort,
                                 kEffortMin, kEffortMax),
                     "reasoning_effort");
    }
    for (std::size_t i = 0; i < conversation.messages.size(); ++i) {
        const bool last = i + 1 == conversation.messages.size();
        const auto error = check_message(conversation.messages[i], last);
        if (error) return error->within(fmt::format("messages[{}]", i));
    }
    return std::nullopt;
}

/// `<｜System｜>` opens a prompt that has a system message first or an effort line.
void add_opening(Prompt& prompt, const Conversation& conversation, const MessageList& messages,
                 Profile profile) {
    const bool thinking = conversation.thinking == Thinking::kOn;
    if (!thinking && messages.front()->role != Role::kSystem) return;
    prompt.add_control(control::kSystem);
    if (thinking) prompt.add_text(effort_line(conversation.effort, profile));
}

/// A system, user or reminder turn. Users that follow each other share one turn.
void add_input_turn(Prompt& prompt, const MessageList& messages, std::size_t i) {
    switch (messages[i]->role) {
        case Role::kSystem:
            if (i > 0) prompt.add_control(control::kSystem);
            break;
        case Role::kUser:
            if (i > 0 && messages[i - 1]->role == Role::kUser) {
                prompt.add_text(kPartSeparator);
            } else {
                prompt.add_control(control::kUser);
            }
            break;
        default: prompt.add_control(control::kLatestReminder); break;
    }
    prompt.add_text(joined_text(*messages[i]));
}

// ---- kRecipe

void add_answer_header(Prompt& prompt, Thinking thinking) {
    prompt.add_control(control::kAssistant);
    prompt.add_control(thinking == Thinking::kOn ? control::kThinkBegin : control::kThinkEnd);
    prompt.start = thinking == Thinking::kOn ? OutputStart::kReasoning : OutputStart::kContent;
}

/// The last message, which the model is to continue.
void add_prefix(Prompt& prompt, const Message& message, Thinking thinking) {
    const std::string content = joined_text(message);
    const std::string reasoning = message.reasoning.value_or("");
    add_answer_header(prompt, thinking);
    if (thinking == Thinking::kOn) {
        add_assistant_text(prompt, reasoning);
        if (content.empty()) {
            if (!reasoning.empty()) prompt.start = OutputStart::kReasoningContinuation;
            return;
        }
        prompt.add_control(control::kThinkEnd);
    }
    add_assistant_text(prompt, content);
    // Newlines at the start of a continuation are the model's own: they must not be dropped.
    if (!content.empty()) prompt.start = OutputStart::kContentContinuation;
}

void add_past_answer(Prompt& prompt, const Message& message, bool with_reasoning) {
    prompt.add_control(control::kAssistant);
    if (with_reasoning) {
        prompt.add_control(control::kThinkBegin);
        add_assistant_text(prompt, message.reasoning.value_or(""));
    }
    prompt.add_control(control::kThinkEnd);
    add_assistant_text(prompt, joined_text(message));
    prompt.add_control(control::kEos);
}

/// Without empty system messages, and with only the first of reminders in a row: so does DeepSeek's
/// own layer.
MessageList rendered_messages(const Conversation& conversation) {
    MessageList messages;
    for (const Message& message : conversation.messages) {
        if (message.role == Role::kSystem && !has_text(message)) continue;
        const bool again = message.role == Role::kLatestReminder && !messages.empty() &&
                           messages.back()->role == Role::kLatestReminder;
        if (!again) messages.push_back(&message);
    }
    return messages;
}

Prompt render_recipe(const Conversation& conversation, const RenderOptions& options) {
    const MessageList messages = rendered_messages(conversation);
    const Thinking thinking = conversation.thinking;
    const bool keep = thinking == Thinking::kOn && options.past_reasoning == PastReasoning::kKeep;

    Prompt prompt;
    prompt.add_control(control::kBos);
    if (!messages.empty()) add_opening(prompt, conversation, messages, options.profile);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Message& message = *messages[i];
        if (message.role != Role::kSystem) prompt.begin_own();
        if (message.role != Role::kAssistant) {
            add_input_turn(prompt, messages, i);
        } else if (message.prefix) {
            // With nothing before it there is nothing to think about: no thinking turn is opened.
            add_prefix(prompt, message, i == 0 ? Thinking::kOff : thinking);
            return prompt;
        } else {
            add_past_answer(prompt, message, keep);
        }
    }
    prompt.begin_own();
    add_answer_header(prompt, thinking);
    return prompt;
}

// ---- kReference

/// A system message counts as a user's, except for the one that opens the prompt.
bool asks(const MessageList& messages, std::size_t i) {
    return messages[i]->role == Role::kUser || (messages[i]->role == Role::kSystem && i > 0);
}

bool header_follows(const MessageList& messages, std::size_t i) {
    if (!asks(messages, i)) return false;
    if (i + 1 == messages.size()) return true;
    const Role next = messages[i + 1]->role;
    return next == Role::kAssistant || next == Role::kLatestReminder;
}

Prompt render_reference(const Conversation& conversation, const RenderOptions& options) {
    MessageList messages;
    for (const Message& message : conversation.messages) messages.push_back(&message);
    std::size_t after_question = 0;  // One past the last message that asks something.
    for (std::size_t i = 0; i < messages.size(); ++i) {
        if (asks(messages, i)) after_question = i + 1;
    }
    const bool keep = options.past_reasoning == PastReasoning::kKeep;
    const auto thinks = [&](std::size_t turn) {
        return conversation.thinking == Thinking::kOn && (keep || turn >= after_question);
    };

    Prompt prompt;
    prompt.add_control(control::kBos);
    add_opening(prompt, conversation, messages, options.profile);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Message& message = *messages[i];
        if (message.role != Role::kSystem) prompt.begin_own();
        if (message.role != Role::kAssistant) {
            add_input_turn(prompt, messages, i);
            if (header_follows(messages, i)) {
                add_answer_header(prompt, thinks(i + 1) ? Thinking::kOn : Thinking::kOff);
            }
            continue;
        }
        if (thinks(i)) {
            prompt.add_text(message.reasoning.value_or(""));
            prompt.add_control(control::kThinkEnd);
        }
        prompt.add_text(joined_text(message));
        if (!message.prefix) prompt.add_control(control::kEos);
        prompt.start = message.prefix ? OutputStart::kContentContinuation : OutputStart::kContent;
    }
    return prompt;
}

}  // namespace

Result<Prompt> render_v41(const Conversation& conversation, const RenderOptions& options) {
    if (auto error = check_conversation(conversation)) return std::unexpected(*std::move(error));
    return options.profile == Profile::kRecipe ? render_recipe(conversation, options)
                                               : render_reference(conversation, options);
}

}  // namespace sluice::protocol
