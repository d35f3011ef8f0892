#include "kv/resp_text.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace sluice::kv {
namespace {

// Below, a buffer of its own costs more than the copy that it saves.
constexpr std::size_t kLargeBytes = 16 * 1024;

}  // namespace

SharedBytes RespText::take_shared() {
    if (large_.owner) return std::exchange(large_, {});
    auto owner = std::make_shared<const std::string>(std::exchange(small_, {}));
    return {.bytes = *owner, .owner = owner};
}

void RespTextCollector::begin(std::size_t length) {
    SLUICE_ASSERT(complete());
    length_ = missing_ = length;
    if (length < kLargeBytes) {
        small_.reserve(length);
    } else {
        large_ = std::make_shared_for_overwrite<char[]>(length);
    }
}

void RespTextCollector::collect(std::string_view& data) {
    const std::size_t count = std::min(missing_, data.size());
    if (!large_) {
        small_.append(data.substr(0, count));
    } else if (char* const place = large_.get() + (length_ - missing_); place != data.data()) {
        std::memcpy(place, data.data(), count);
    }
    missing_ -= count;
    data.remove_prefix(count);
}

std::span<char> RespTextCollector::room() const {
    if (!large_) return {};
    return {large_.get() + (length_ - missing_), missing_};
}

RespText RespTextCollector::take() {
    SLUICE_ASSERT(complete());
    if (!large_) return RespText(std::exchange(small_, {}));
    const std::string_view bytes(large_.get(), length_);
    return RespText(SharedBytes{.bytes = bytes, .owner = std::exchange(large_, nullptr)});
}

}  // namespace sluice::kv
