#pragma once

// Replies as a client gets them, of both versions of RESP. Incremental and bounded, as requests are on
// the other side: a server is not trusted with this process's memory. Attributes are read and dropped;
// streamed strings and aggregates, which no server sends unasked, are errors.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kv/resp_bounds.h"
#include "kv/resp_line.h"
#include "kv/resp_reply.h"

namespace sluice::kv {

class RespReplyReader {
public:
    enum class Status : std::uint8_t { kMore, kReply, kError };

    explicit RespReplyReader(const RespBounds& bounds = {}) : bounds_(bounds) {}

    /// Takes from the front of `data`, at most to the end of one reply. `kMore` has taken all. After an
    /// error nothing is read any more: where the next reply starts is unknown.
    [[nodiscard]] Status read(std::string_view& data);

    /// After `kReply`, once.
    [[nodiscard]] RespReply take();

    /// After `kError`.
    [[nodiscard]] const Error& error() const { return error_; }

    /// As RespRequestReader::room.
    [[nodiscard]] std::span<char> room() const;

    /// What the present, unfinished reply takes, announced bytes included.
    [[nodiscard]] std::size_t held_bytes() const { return held_bytes_ + line_.held_bytes(); }

    /// No part of a reply is there.
    [[nodiscard]] bool idle() const {
        return stage_ == Stage::kLine && open_.empty() && line_.held_bytes() == 0;
    }

private:
    enum class Stage : std::uint8_t { kLine, kText, kTextEnd, kFailed };

    /// An aggregate that is not complete yet.
    struct Open {
        RespReply reply;
        std::size_t missing = 0;
        bool is_attribute = false;
    };

    [[nodiscard]] Status read_line(std::string_view& data);
    [[nodiscard]] Status read_text(std::string_view& data);
    [[nodiscard]] Status begin(char kind, std::string_view rest);
    [[nodiscard]] Status begin_line(RespType type, std::string_view line);
    [[nodiscard]] Status begin_number(char kind, std::string_view text);
    [[nodiscard]] Status begin_text(RespType type, std::string_view length);
    [[nodiscard]] Status begin_aggregate(char kind, std::string_view count);
    /// One more value is complete: a whole reply, or part of what is open.
    [[nodiscard]] Status complete(RespReply reply);
    [[nodiscard]] bool hold(std::size_t bytes);
    [[nodiscard]] Status fail(std::string message);

    RespBounds bounds_;
    Stage stage_ = Stage::kLine;
    RespLineReader line_;
    RespTextCollector text_;
    RespType text_type_ = RespType::kText;
    std::vector<Open> open_;
    RespReply reply_;
    std::size_t elements_ = 0;
    std::size_t held_bytes_ = 0;
    Error error_ = Error::invalid({});
};

}  // namespace sluice::kv
