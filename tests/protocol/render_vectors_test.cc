// Byte-exact rendering against DeepSeek's own layer and the published encoder.

#include <gtest/gtest.h>

#include <map>

#include "protocol/chat_request.h"
#include "protocol/dialect_v41.h"
#include "tests/protocol/vectors.h"

namespace sluice::protocol {
namespace {

namespace json = boost::json;

constexpr const char* kAbsent = "test vectors are not here; set SLUICE_DATA to their folder";

bool has_image_or_file(const json::value& message) {
    const json::value& content = field(message, "content");
    if (!content.is_array()) return false;
    for (const json::value& part : content.get_array()) {
        if (text_of(field(part, "type")) != "text") return true;
    }
    return false;
}

/// Text, thinking and system turns only; what else a body may hold comes later.
bool is_in_scope(const json::value& body) {
    const json::value& tool_choice = field(body, "tool_choice");
    if (!field(body, "tools").is_null()) return false;
    if (!tool_choice.is_null() && tool_choice != "auto" && tool_choice != "none") return false;
    const json::value& format = field(body, "response_format");
    if (!format.is_null() && field(format, "type") != "text") return false;
    const json::value& messages = field(body, "messages");
    if (!messages.is_array()) return true;
    for (const json::value& message : messages.get_array()) {
        if (field(message, "role") == "tool" || has_image_or_file(message)) return false;
        if (!field(message, "tool_calls").is_null()) return false;
    }
    return true;
}

/// Where Sluice takes what DeepSeek's layer refuses: any 64-bit seed; model names are the gateway's.
bool is_refused_there_only(const json::value& body) {
    return !field(body, "seed").is_null() || !field(body, "model").is_null();
}

/// Code points, as the vectors count.
json::array special_of(const Prompt& prompt) {
    const std::string text = prompt.text();
    const auto points = [&](std::size_t bytes) {
        return std::count_if(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bytes),
                             [](char byte) { return (byte & 0xC0) != 0x80; });
    };
    json::array special;
    for (const auto& [begin, end] : prompt.control_ranges()) {
        special.push_back(points(begin));
        special.push_back(points(end));
    }
    return special;
}

OutputStart start_of(const json::value& result, const json::value& body) {
    const std::string stage = text_of(field(field(result, "parse"), "stage"));
    if (stage == "ReasoningStart") return OutputStart::kReasoning;
    if (stage == "ReasoningContinuation") return OutputStart::kReasoningContinuation;
    if (stage == "ContentContinuation") return OutputStart::kContentContinuation;
    // Without thinking that layer drops the first newlines of a continuation; Sluice keeps them.
    const json::value& last = field(body, "messages").as_array().back();
    const bool continued = field(last, "prefix") == true && field(last, "role") == "assistant" &&
                           !text_of(field(last, "content")).empty();
    return continued ? OutputStart::kContentContinuation : OutputStart::kContent;
}

Result<Prompt> render_body(const json::value& body, Thinking thinking) {
    const auto request =
        parse_chat_request(json::serialize(body), {.thinking = thinking, .model = "m"});
    if (!request) return std::unexpected(request.error());
    return render_v41(request->conversation);
}

TEST(RenderVectorsTest, TheRecipeProfileWritesWhatDeepSeeksLayerWrites) {
    const auto vectors = load_vectors("recipe_render_vectors.json");
    if (!vectors) GTEST_SKIP() << kAbsent;
    int equal = 0;
    int refused = 0;
    for (const json::value& row : field(*vectors, "cases").as_array()) {
        const json::value& body = field(row, "b");
        if (field(row, "p") != "chat" || !is_in_scope(body)) continue;
        const json::value& result = field(row, "v41");
        const json::value& stage = field(field(result, "err"), "stage");
        const bool off = field(field(row, "o"), "default_thinking_mode") == false;
        const auto prompt = render_body(body, off ? Thinking::kOff : Thinking::kOn);
        const std::string name = text_of(field(row, "n"));
        if (stage == "convert" && !is_refused_there_only(body)) {
            EXPECT_FALSE(prompt.has_value()) << name;
            ++refused;
        }
        if (!stage.is_null()) continue;
        ASSERT_TRUE(prompt.has_value()) << name << ": " << prompt.error().to_string();
        EXPECT_EQ(prompt->text(), text_of(field(result, "prompt"))) << name;
        EXPECT_EQ(json::value(special_of(*prompt)), field(result, "special")) << name;
        EXPECT_EQ(prompt->start, start_of(result, body)) << name;
        ++equal;
    }
    RecordProperty("equal", equal);
    RecordProperty("refused", refused);
    std::printf("%d prompts equal, %d requests refused as there\n", equal, refused);
    EXPECT_GT(equal, 100);
}

std::optional<Conversation> conversation_of(const json::value& messages) {
    Conversation conversation;
    for (const json::value& row : messages.as_array()) {
        for (const char* name : {"tools", "tool_calls", "response_format", "task"}) {
            if (!field(row, name).is_null()) return std::nullopt;
        }
        static const std::map<std::string, Role> kRoles = {
            {"system", Role::kSystem},
            {"user", Role::kUser},
            {"assistant", Role::kAssistant},
            {"latest_reminder", Role::kLatestReminder}};
        const auto role = kRoles.find(text_of(field(row, "role")));
        if (role == kRoles.end()) return std::nullopt;
        Message message;
        message.role = role->second;
        message.parts.push_back(
            {PartKind::kText, text_of(field(row, "content")), ImageDetail::kAuto});
        const json::value& reasoning = field(row, "reasoning_content");
        if (!reasoning.is_null()) message.reasoning = text_of(reasoning);
        message.prefix = field(row, "wo_eos") == true;
        conversation.messages.push_back(std::move(message));
    }
    return conversation;
}

Effort effort_of(const json::value& effort) {
    if (effort.is_int64()) return static_cast<int>(effort.get_int64());
    if (effort == "low") return EffortLevel::kLow;
    if (effort == "xhigh") return EffortLevel::kXhigh;
    return effort == "max" ? EffortLevel::kMax : EffortLevel::kHigh;
}

TEST(RenderVectorsTest, TheReferenceProfileWritesWhatThePublishedEncoderWrites) {
    const auto vectors = load_vectors("prompt_vectors.json");
    if (!vectors) GTEST_SKIP() << kAbsent;
    int equal = 0;
    int later = 0;
    for (const json::value& row : field(*vectors, "vectors").as_array()) {
        if (field(row, "version") != "v4.1") continue;
        const std::string name = text_of(field(row, "name"));
        auto conversation = conversation_of(field(field(*vectors, "messages"), name));
        if (!conversation) {
            ++later;
            continue;
        }
        conversation->thinking = field(row, "mode") == "thinking" ? Thinking::kOn : Thinking::kOff;
        conversation->effort = effort_of(field(row, "effort"));
        const bool keep = field(row, "drop_thinking") == false;
        const auto prompt = render_v41(
            *conversation, {.profile = Profile::kReference,
                            .past_reasoning = keep ? PastReasoning::kKeep : PastReasoning::kDrop});
        ASSERT_TRUE(prompt.has_value()) << name << ": " << prompt.error().to_string();
        EXPECT_EQ(prompt->text(), text_of(field(row, "prompt"))) << name;
        ++equal;
    }
    std::printf("%d prompts equal, %d need tools, formats or tasks\n", equal, later);
    EXPECT_GT(equal, 30);
}

}  // namespace
}  // namespace sluice::protocol
