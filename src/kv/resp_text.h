#pragma once

// Strings of RESP on their way in. Their length is known before they come, so a large one gets a
// buffer of its own at once and is collected only there; whoever stores it keeps that buffer.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kv/shared_bytes.h"

namespace sluice::kv {

/// A string as it came. Small ones (below 16 KiB) are held by value, large ones shared.
class RespText {
public:
    RespText() = default;
    explicit RespText(std::string small) : small_(std::move(small)) {}
    explicit RespText(SharedBytes large) : large_(std::move(large)) {}

    [[nodiscard]] std::string_view view() const { return large_.owner ? large_.bytes : small_; }
    [[nodiscard]] std::size_t size() const { return view().size(); }

    /// Takes the bytes out, without a copy where they are large. The text is empty afterwards.
    [[nodiscard]] SharedBytes take_shared();

private:
    std::string small_;
    SharedBytes large_;  ///< Instead, if it has an owner.
};

/// Collects one RespText of known length from pieces.
class RespTextCollector {
public:
    /// Memory for all of `length` is asked for here; the caller has checked it against its bound.
    void begin(std::size_t length);

    /// Takes what belongs to the text from the front of `data`. Bytes that lie in `room` already
    /// are not copied.
    void collect(std::string_view& data);

    /// Where the rest of a large text belongs, so that a socket may read to there. Empty for small
    /// texts and complete ones.
    [[nodiscard]] std::span<char> room() const;

    [[nodiscard]] bool complete() const { return missing_ == 0; }

    /// Once, when complete.
    [[nodiscard]] RespText take();

private:
    std::string small_;
    std::shared_ptr<char[]> large_;
    std::size_t length_ = 0;
    std::size_t missing_ = 0;
};

}  // namespace sluice::kv
