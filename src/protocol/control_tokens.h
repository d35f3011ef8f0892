#pragma once

// Spellings of DeepSeek V4.1's control tokens. The bars are U+FF5C and the blocks U+2581, so that
// ordinary text rarely spells them.

#include <array>
#include <string_view>

namespace sluice::protocol::control {

inline constexpr std::string_view kBos = "<｜begin▁of▁sentence｜>";
inline constexpr std::string_view kEos = "<｜end▁of▁sentence｜>";
inline constexpr std::string_view kSystem = "<｜System｜>";
inline constexpr std::string_view kUser = "<｜User｜>";
inline constexpr std::string_view kAssistant = "<｜Assistant｜>";
inline constexpr std::string_view kLatestReminder = "<｜latest_reminder｜>";
inline constexpr std::string_view kThinkBegin = "<think>";
inline constexpr std::string_view kThinkEnd = "</think>";

/// Marks an assistant turn uses to point at places in an image. In such turns only, they are
/// tokens even when a client wrote them: they are what the model itself had written.
inline constexpr auto kGrounding = std::to_array<std::string_view>({
    "<｜ref｜>",
    "<｜/ref｜>",
    "<｜box｜>",
    "<｜/box｜>",
    "<｜point｜>",
    "<｜/point｜>",
    "<｜polygon｜>",
    "<｜/polygon｜>",
});

}  // namespace sluice::protocol::control
