#pragma once

// A single server of RESP: our node, a Redis, a Valkey, or one node of a Redis Cluster.

#include <array>

#include "kvnode/kv_member.h"

namespace sluice::kvnode {

class RespNode final : public KvMember {
public:
    RespNode(net::EventLoop& loop, const MemberOptions& options);
    ~RespNode() override { close_all(); }

    void call(Lane lane, RespRequest request, Deadline deadline, RespClient::OnReply on_reply,
              WantedBy wanted_by = std::nullopt) override;
    [[nodiscard]] bool up(Lane lane, const std::string& name) const override;
    void break_off(Lane lane, const std::string& name, const std::string& why) override;
    void close() override { close_all(); }

    [[nodiscard]] const StoreUrl& address() const { return address_; }
    [[nodiscard]] bool up(Lane lane) const { return client(lane).up(); }

private:
    [[nodiscard]] RespClient& client(Lane lane) const {
        return *clients_.at(static_cast<std::size_t>(lane));
    }
    void close_all();

    const StoreUrl address_;
    std::array<std::shared_ptr<RespClient>, kLanes> clients_;
};

}  // namespace sluice::kvnode
