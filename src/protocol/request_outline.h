#pragma once

// What the gateway must know of a request before it knows which engine will read it: the model's
// name, whether it streams, what class it is, which conversation it belongs to. One pass over the
// body, which for the long ones costs a fraction of reading it in full; what the outline doesn't
// need is not checked, so a body with an outline may still be refused by the engine.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/hash.h"
#include "base/request_class.h"

namespace sluice::protocol {

/// Bytes of the body; empty where the field is absent.
struct BodySpan {
    std::size_t begin = 0;
    std::size_t size = 0;
    [[nodiscard]] bool empty() const { return size == 0; }
    bool operator==(const BodySpan&) const = default;
};

struct RequestOutline {
    std::string model;  ///< Empty if absent.
    RequestKind kind = RequestKind::kText;
    /// The request fixes its answer: temperature 0, or a seed.
    bool fixed = false;
    bool stream = false;
    bool include_usage = false;  ///< `stream_options.include_usage`.
    std::optional<std::uint64_t> max_tokens;
    std::string prompt_cache_key;
    std::string user;
    /// Of the JSON schema or grammar that the answer must follow, else of the tools: 32 hexadecimal
    /// digits, equal for equal text. Empty if there is none.
    std::string schema_digest;
    /// Of the system text and the first user text, or of a prompt's beginning.
    Xxh128 opening;

    // Where to rewrite the body: values as they stand there.
    BodySpan model_value;
    BodySpan stream_options_value;  ///< An object or null.
    BodySpan include_usage_value;   ///< In it.
    BodySpan cache_salt_value;
    std::size_t after_brace = 0;  ///< Behind the root's opening brace.
    bool empty_object = false;    ///< The root has no field, so that one more needs no comma.
};

/// Errors are `kInvalid` and name the field. A body with `limits::kBodySlackBytes` of capacity behind
/// its end is read where it is, others are copied first.
[[nodiscard]] Result<RequestOutline> read_outline(const std::string& body);

/// Names the conversation of a request for whatever must treat it as one: `header` if it is not empty,
/// else prompt_cache_key, else user, else a digest of tenant, system text and first user text.
[[nodiscard]] std::string conversation_key(const RequestOutline& outline, std::string_view header,
                                           std::string_view tenant);

}  // namespace sluice::protocol
