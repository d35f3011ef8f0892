#pragma once

// DeepSeek V4.1's prompt format, text, thinking and system turns (tools and images to come).
//
// Two profiles write the same tokens with different rules. kRecipe is what DeepSeek's own API layer
// sends to the model, kReference is the encoder published beside the weights. They differ in the
// numbers behind named efforts, in what an old assistant turn looks like and in how a prompt ends:
//
//   | topic                       | kRecipe                              | kReference               |
//   |-----------------------------|--------------------------------------|--------------------------|
//   | low, high, xhigh, max       | 50, 75, 75, 100                      | 25, 50, 75, 100          |
//   | past assistant turns        | all `<｜Assistant｜></think>`        | header only after a user |
//   | empty system message        | left out                             | `<｜System｜>` alone     |
//   | reminders in a row          | the first one                        | all                      |
//   | last message an assistant   | a new turn is opened                 | the prompt ends          |
//   | reasoning of a prefix       | kept while thinking                  | as of any past turn      |

#include <cstdint>

#include "base/error.h"
#include "protocol/conversation.h"
#include "protocol/prompt.h"

namespace sluice::protocol {

enum class Profile : std::uint8_t { kRecipe, kReference };

/// What happens to the thinking of earlier turns.
enum class PastReasoning : std::uint8_t { kDrop, kKeep };

struct RenderOptions {
    Profile profile = Profile::kRecipe;
    PastReasoning past_reasoning = PastReasoning::kDrop;
};

/// Error `kInvalid` if there is no message, or a prefix that isn't the last one; `kOutOfRange` for an
/// effort outside [1, 100]; `kUnsupported` for tools, images and formats. Places are paths from the
/// conversation ("messages[3].content[0]").
[[nodiscard]] Result<Prompt> render_v41(const Conversation& conversation,
                                        const RenderOptions& options = {});

}  // namespace sluice::protocol
