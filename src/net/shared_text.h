#pragma once

// Text that goes out as it is, without a copy of it being made.

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::net {

struct SharedText {
    std::string_view text;
    std::shared_ptr<const void> owner;  ///< Keeps `text` where it is.

    static SharedText own(std::string text) {
        auto owner = std::make_shared<const std::string>(std::move(text));
        return {.text = *owner, .owner = owner};
    }
};

}  // namespace sluice::net
