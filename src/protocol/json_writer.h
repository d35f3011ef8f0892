#pragma once

// The few JSON pieces the hot path writes by hand: a stream chunk is a fixed head, one escaped
// string and a fixed tail.

#include <string>
#include <string_view>

namespace sluice::protocol {

/// Appends `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD, so that
/// the result is valid JSON whatever a model produced.
void append_json_string(std::string& out, std::string_view text);

/// Appends a finite number; NaN and infinities become -9999, the protocol's "impossible".
void append_json_logprob(std::string& out, float logprob);

/// Length in bytes of the UTF-8 character `text` begins with; 0 if it begins with none.
[[nodiscard]] std::size_t utf8_length(std::string_view text);

}  // namespace sluice::protocol
