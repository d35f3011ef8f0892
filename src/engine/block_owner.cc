#include "engine/block_owner.h"

#include <cstring>

#include "base/hash.h"

namespace sluice::engine {

std::uint64_t tenant_hash(std::string_view tenant) {
    const Sha256Digest digest = sha256(tenant);
    std::uint64_t hash = 0;
    std::memcpy(&hash, digest.data(), sizeof(hash));
    return hash;
}

}  // namespace sluice::engine
