#pragma once

// Where blocks are kept outside of this process, as people write it:
//
//   redis://[[user]:password@]host[:port]     one node: ours, Redis, Valkey
//   rediss://…                                the same by TLS
//   redis+cluster://…, rediss+cluster://…     any node of a Redis Cluster
//   dir:///shared/kv                          a directory
//
// User and password may hold any byte as %XX.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::kvnode {

struct StoreUrl {
    enum class Kind : std::uint8_t { kNode, kCluster, kDirectory };

    Kind kind = Kind::kNode;
    bool secure = false;
    std::string host{};  ///< Without brackets.
    std::uint16_t port = 6379;
    std::string user{};
    std::string password{};  ///< Empty: none is sent.
    std::string path{};      ///< Of a directory, absolute.

    /// As above, without user and password: what logs, metrics and placement call it.
    [[nodiscard]] std::string name() const;
    bool operator==(const StoreUrl&) const = default;
};

/// Everything, the password included, as `parse_store_url` reads it.
[[nodiscard]] std::string to_text(const StoreUrl& url);

/// Error `kInvalid`, or `kUnsupported` for other schemes. The message doesn't show the password.
[[nodiscard]] Result<StoreUrl> parse_store_url(std::string_view text);

}  // namespace sluice::kvnode
