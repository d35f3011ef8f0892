#pragma once

// Requests as a server gets them: arrays of strings, or lines of words. Incremental: whatever pieces
// the network makes, a request comes out once it is whole. What a client may make this hold is
// bounded and, with `held_bytes`, known while it comes.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kv/resp_bounds.h"
#include "kv/resp_line.h"
#include "kv/resp_text.h"

namespace sluice::kv {

class RespRequestReader {
public:
    enum class Status : std::uint8_t { kMore, kRequest, kError };

    explicit RespRequestReader(const RespBounds& bounds = {}) : bounds_(bounds) {}

    /// From the next request on.
    void set_bounds(const RespBounds& bounds) { bounds_ = bounds; }

    /// Takes from the front of `data`, at most to the end of one request. `kMore` has taken all. After
    /// an error nothing is read any more: where the next request starts is unknown.
    [[nodiscard]] Status read(std::string_view& data);

    /// After `kRequest`, once: the command and its arguments, never empty.
    [[nodiscard]] std::vector<RespText> take();

    /// After `kError`: "invalid bulk length", as Redis says it.
    [[nodiscard]] const Error& error() const { return error_; }

    /// Where the next bytes of a large argument belong, so that a socket may read to there (what it
    /// read is then given to `read`, as ever). Empty at any other time.
    [[nodiscard]] std::span<char> room() const;

    /// What the present, unfinished request takes, announced bytes included.
    [[nodiscard]] std::size_t held_bytes() const { return held_bytes_ + line_.held_bytes(); }

    /// No part of a request is there.
    [[nodiscard]] bool idle() const { return stage_ == Stage::kStart && line_.held_bytes() == 0; }

private:
    enum class Stage : std::uint8_t { kStart, kLength, kText, kTextEnd, kFailed };

    [[nodiscard]] Status read_line(std::string_view& data);
    [[nodiscard]] Status start(std::string_view line);
    [[nodiscard]] Status start_inline(std::string_view line);
    [[nodiscard]] Status begin_text(std::string_view line);
    [[nodiscard]] Status read_text(std::string_view& data);
    [[nodiscard]] Status end_text();
    [[nodiscard]] Status fail(std::string message);

    RespBounds bounds_;
    Stage stage_ = Stage::kStart;
    RespLineReader line_;
    RespTextCollector text_;
    std::vector<RespText> arguments_;
    std::size_t missing_ = 0;  ///< Arguments still to come.
    std::size_t held_bytes_ = 0;
    Error error_ = Error::invalid({});
};

}  // namespace sluice::kv
