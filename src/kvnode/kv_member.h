#pragma once

// One of those among whom placement spreads extents: a node, or a whole Redis Cluster, which spreads
// what it gets once more. Requests go over three connections, so that a look-up never waits behind
// a large value.

#include <memory>
#include <optional>
#include <string>

#include "kvnode/block_store.h"
#include "kvnode/resp_client.h"

namespace sluice::kvnode {

enum class Lane : std::uint8_t { kLookUp, kLoad, kStore };
inline constexpr std::size_t kLanes = 3;

/// How a member's servers are called.
struct MemberOptions {
    StoreUrl address;
    std::shared_ptr<const net::TlsTrust> trust{};  ///< For secure addresses.
    std::chrono::milliseconds connect_time{1'000};
    std::chrono::milliseconds probe_pause{1'000};
};

class KvMember {
public:
    using WantedBy = std::optional<std::weak_ptr<const void>>;

    KvMember() = default;
    KvMember(const KvMember&) = delete;
    KvMember& operator=(const KvMember&) = delete;
    virtual ~KvMember() = default;

    /// As RespClient::call. `request` is about the name that is its second word.
    virtual void call(Lane lane, RespRequest request, Deadline deadline,
                      RespClient::OnReply on_reply, WantedBy wanted_by = std::nullopt) = 0;
    /// False if whoever has `name` is known to be down: don't ask.
    [[nodiscard]] virtual bool up(Lane lane, const std::string& name) const = 0;
    /// What came for `name` made no sense: that connection is not used any more.
    virtual void break_off(Lane lane, const std::string& name, const std::string& why) = 0;
    virtual void close() = 0;

    StoreStats stats;  ///< Kept by whoever uses the member; `up` is not.
};

}  // namespace sluice::kvnode
