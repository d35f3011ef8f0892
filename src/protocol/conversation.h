#pragma once

// A conversation as Sluice sees it, whatever protocol it came in by and whatever dialect it will be
// written in. Protocol parsers fill it, dialects read it; neither knows the other.
//
// Absent and empty are different things here: a message without reasoning is not one whose
// reasoning is "", and clients send both back to us.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace sluice::protocol {

enum class Role : std::uint8_t {
    kSystem,  ///< Chat's `developer` too.
    kUser,
    kAssistant,
    kTool,            ///< The result of a call; no dialect renders it yet.
    kLatestReminder,  ///< DeepSeek's own: context that changes with every turn.
};

enum class PartKind : std::uint8_t { kText, kImage };
enum class ImageDetail : std::uint8_t { kAuto, kLow, kHigh, kOriginal };

struct ContentPart {
    PartKind kind = PartKind::kText;
    std::string text;  ///< UTF-8; the URL of an image.
    ImageDetail detail = ImageDetail::kAuto;
    bool operator==(const ContentPart&) const = default;
};

struct ToolCall {
    std::string id;
    std::string name;
    std::string arguments;  ///< As the client wrote it; usually JSON.
    bool operator==(const ToolCall&) const = default;
};

struct ToolDefinition {
    std::string name;
    std::string description;
    std::string parameters;  ///< A JSON Schema, as text.
    bool strict = false;
    bool operator==(const ToolDefinition&) const = default;
};

struct Message {
    Role role = Role::kUser;
    std::vector<ContentPart> parts;
    std::optional<std::string> reasoning;  ///< Assistant only.
    std::vector<ToolCall> tool_calls;      ///< Assistant only.
    std::string tool_call_id;              ///< Tool only.
    bool prefix = false;                   ///< The answer goes on where this last message ends.
    bool operator==(const Message&) const = default;
};

enum class Thinking : std::uint8_t { kOff, kOn };

enum class EffortLevel : std::uint8_t { kLow, kHigh, kXhigh, kMax };

inline constexpr int kEffortMin = 1;
inline constexpr int kEffortMax = 100;

/// A named effort, whose number is the dialect's business, or a number in [kEffortMin, kEffortMax].
using Effort = std::variant<EffortLevel, int>;

enum class FormatKind : std::uint8_t { kText, kJsonObject, kJsonSchema };

struct ResponseFormat {
    FormatKind kind = FormatKind::kText;
    std::string schema;  ///< For kJsonSchema, as text.
    bool operator==(const ResponseFormat&) const = default;
};

struct Conversation {
    std::vector<Message> messages;
    std::vector<ToolDefinition> tools;
    Thinking thinking = Thinking::kOff;
    Effort effort = EffortLevel::kHigh;  ///< Used only while thinking.
    ResponseFormat response_format;
    bool operator==(const Conversation&) const = default;
};

/// What stands between two text parts of one message in DeepSeek's formats.
inline constexpr const char* kPartSeparator = "\n\n";

}  // namespace sluice::protocol
