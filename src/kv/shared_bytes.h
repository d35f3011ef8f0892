#pragma once

// Bytes that never change, and live as long as somebody has them: a block on its way through tiers
// and sockets is held by all of them and copied by none.

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::kv {

struct SharedBytes {
    std::string_view bytes;
    std::shared_ptr<const void> owner;  ///< Null: there is nothing.

    explicit operator bool() const { return owner != nullptr; }

    static SharedBytes own(std::string text) {
        auto owner = std::make_shared<const std::string>(std::move(text));
        return {.bytes = *owner, .owner = owner};
    }
};

}  // namespace sluice::kv
