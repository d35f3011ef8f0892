#pragma once

// What a server of RESP answers, of either version.

#include <cstdint>
#include <vector>

#include "kv/resp_text.h"

namespace sluice::kv {

enum class RespType : std::uint8_t {
    kNull,     ///< Also RESP2's null strings and null arrays.
    kStatus,   ///< A line, such as OK.
    kError,    ///< A line or a text, such as "ERR no such command".
    kText,     ///< Also verbatim texts ("txt:..."), as they are.
    kInteger,  ///< A boolean is one, too: 0 or 1.
    kDouble,
    kBigNumber,  ///< Its digits as text.
    kArray,
    kSet,
    kMap,   ///< Elements are keys and values in turn.
    kPush,  ///< Not an answer to anything.
};

struct RespReply {
    RespType type = RespType::kNull;
    RespText text{};           ///< kStatus, kError, kText, kBigNumber.
    std::int64_t integer = 0;  ///< kInteger.
    double number = 0;         ///< kDouble.
    std::vector<RespReply> elements{};

    [[nodiscard]] bool is_error() const { return type == RespType::kError; }
    [[nodiscard]] bool is_null() const { return type == RespType::kNull; }
};

}  // namespace sluice::kv
