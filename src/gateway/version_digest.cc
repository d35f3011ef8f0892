#include "gateway/version_digest.h"

#include <fmt/format.h>

#include "base/hash.h"

namespace sluice::gateway {

std::string version_digest(const port::ServerInfo& info) {
    const std::string manifest = fmt::format("{}\n{}\n{}\n{}\n{}", info.engine, info.fingerprint,
                                             info.numerics_id, info.version, info.commit);
    return "fp_" + to_hex(sha256(manifest)).substr(0, 16);
}

}  // namespace sluice::gateway
