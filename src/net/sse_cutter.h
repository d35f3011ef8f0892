#pragma once

// Cuts a stream of server-sent events into whole events without copying them, for a relay that
// passes their bytes on as they are: what SseParser makes of a stream, plus where it stood.
//
// Every byte of the stream is in exactly one piece, in order. A piece ends with an event's blank
// line, so that what a relay sends after a piece never falls into the middle of an event.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::net {

class SseCutter {
public:
    struct Piece {
        std::string_view raw;   ///< As it came, blank line included.
        std::string_view data;  ///< Data lines joined by LF; empty for comments and the like.
        bool has_data = false;
    };

    /// Calls `on_piece(const Piece&)` for each event that `chunk` completes. Views hold during the
    /// call only. Error `kExhausted` once an event grows past `limits::kSseEventBytes`; from then on
    /// every call fails.
    template <class OnPiece>
    [[nodiscard]] Result<void> feed(std::string_view chunk, OnPiece&& on_piece) {
        if (failed_) return std::unexpected(too_large());
        std::string_view input = chunk;
        const bool joined = !kept_.empty();
        if (joined) input = kept_.append(chunk);
        std::size_t begin = 0;
        while (const auto end = find_end(input.substr(begin), joined && begin == 0 ? seen_ : 0)) {
            const std::string_view raw = input.substr(begin, end);
            on_piece(cut(raw));
            begin += end;
        }
        return keep(input.substr(begin), joined);
    }

    /// Bytes of an event that has not ended.
    [[nodiscard]] bool in_event() const;
    /// What has not ended; the stream is over.
    [[nodiscard]] std::string_view rest() const { return kept_; }

private:
    /// Bytes up to the end of the first event's blank line; 0 if it is not there. Looks from `from`.
    [[nodiscard]] static std::size_t find_end(std::string_view input, std::size_t from);
    [[nodiscard]] Piece cut(std::string_view raw);
    [[nodiscard]] Result<void> keep(std::string_view rest, bool joined);
    [[nodiscard]] static Error too_large();

    std::string kept_;      ///< The beginning of an event.
    std::size_t seen_ = 0;  ///< Of it, known to hold no blank line.
    std::string lines_;     ///< Data of several lines.
    bool at_start_ = true;
    bool failed_ = false;
};

}  // namespace sluice::net
