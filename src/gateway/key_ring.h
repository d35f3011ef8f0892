#pragma once

// The API keys that are valid now, as the file of keys says. A file that changes is read again; one
// that is gone or broken changes nothing, so that no accident opens a service or locks everybody out.

#include <memory>
#include <string>
#include <string_view>

#include "admission/key_table.h"
#include "base/error.h"

namespace sluice::gateway {

class KeyRing {
public:
    /// No keys, ever.
    KeyRing() = default;

    /// A file that does not exist yet is an empty ring.
    [[nodiscard]] static Result<KeyRing> load(std::string file);

    /// Reads the file again if it has changed. Cheap enough to be called every second.
    void refresh();

    [[nodiscard]] bool empty() const { return table_.keys().empty(); }
    /// How many tenants have a key.
    [[nodiscard]] std::size_t tenants() const;
    [[nodiscard]] bool has_valid_admin_key() const;
    /// The key of this text if it is valid now; else null.
    [[nodiscard]] const admission::ApiKey* authenticate(std::string_view text) const;

private:
    [[nodiscard]] Result<void> read();

    std::string file_;
    std::string version_;
    admission::KeyTable table_;
};

}  // namespace sluice::gateway
