#include "base/secure_random.h"

#include <sys/random.h>

#include <cerrno>

#include "base/assert.h"

namespace sluice {

void fill_secure_random(std::span<std::uint8_t> bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::getrandom(bytes.data(), bytes.size(), 0);
        SLUICE_ASSERT(count >= 0 || errno == EINTR);
        if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
}

}  // namespace sluice
