#pragma once

// Lines of RESP, put together from pieces of any size.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::kv {

class RespLineReader {
public:
    enum class Status : std::uint8_t { kMore, kLine, kTooLong };

    /// Takes the next line with its end (LF, or CR LF) from the front of `data`. One of more than
    /// `most` bytes is too long, and seen as such before it ends.
    [[nodiscard]] Status read(std::string_view& data, std::size_t most);

    /// The line without its end; valid until the next `read`, and as long as its `data`.
    [[nodiscard]] std::string_view line() const { return line_; }

    /// Bytes of an unfinished line.
    [[nodiscard]] std::size_t held_bytes() const { return whole_ ? 0 : held_.size(); }

private:
    std::string held_;
    std::string_view line_;
    bool whole_ = true;  ///< The present line is complete, `held_` of no more use.
};

/// A whole number as RESP has it: an optional sign and digits, nothing else.
[[nodiscard]] std::optional<std::int64_t> parse_resp_integer(std::string_view text);

}  // namespace sluice::kv
