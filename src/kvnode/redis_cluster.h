#pragma once

// A Redis or Valkey Cluster as one member: its own 16,384 slots say which of its nodes has what.
//
// Slots are learnt from CLUSTER SLOTS, asked of any node that answers, and corrected by what nodes say:
// MOVED (the slot lives elsewhere now) and ASK (this one request is to be asked elsewhere, because the
// slot is moving). Both are followed a few times and then an error. The map is read anew when it has
// been wrong or a node is down, at most once a second.

#include <array>
#include <map>
#include <string_view>
#include <vector>

#include "kvnode/resp_node.h"

namespace sluice::kvnode {

inline constexpr std::size_t kClusterSlots = 16'384;

/// The slot of a key: CRC-16 (XMODEM) of it, or of what stands between its first { and the } after it.
[[nodiscard]] std::uint16_t cluster_slot(std::string_view key);

/// "MOVED 3999 127.0.0.1:6381", or ASK; the host is empty where the sender means its own.
struct Redirection {
    bool ask = false;
    std::uint16_t slot = 0;
    std::string host{};
    std::uint16_t port = 0;
    bool operator==(const Redirection&) const = default;
};
[[nodiscard]] std::optional<Redirection> parse_redirection(std::string_view error);

class RedisCluster final : public KvMember, public std::enable_shared_from_this<RedisCluster> {
public:
    static std::shared_ptr<RedisCluster> make(net::EventLoop& loop, MemberOptions options);
    RedisCluster(net::EventLoop& loop, MemberOptions options);  ///< For `make`.
    ~RedisCluster() override { close_all(); }

    void call(Lane lane, RespRequest request, Deadline deadline, RespClient::OnReply on_reply,
              WantedBy wanted_by = std::nullopt) override;
    [[nodiscard]] bool up(Lane lane, const std::string& name) const override;
    void break_off(Lane lane, const std::string& name, const std::string& why) override;
    void close() override { close_all(); }

    [[nodiscard]] std::uint64_t redirections() const { return redirections_; }

private:
    using Node = std::shared_ptr<RespNode>;

    /// A request on its way through the cluster.
    struct Trip {
        Lane lane;
        RespRequest request;
        Deadline deadline;
        RespClient::OnReply on_reply;
        WantedBy wanted_by;
        int hops = 0;
    };

    [[nodiscard]] Node node(const std::string& host, std::uint16_t port);
    /// Where a key probably is.
    [[nodiscard]] Node node_of(const std::string& name) const;
    void send(const std::shared_ptr<Trip>& trip, const Node& to, bool asking);
    void replied(const std::shared_ptr<Trip>& trip, const Node& from, Result<kv::RespReply> reply);
    void tick();
    void learn_slots();
    void learnt(const kv::RespReply& reply, const Node& from);
    void close_all();

    net::EventLoop& loop_;
    const MemberOptions options_;
    std::map<std::pair<std::string, std::uint16_t>, Node> nodes_;
    std::vector<Node> slots_;  ///< Null: not known.
    Node first_;               ///< Of the address that we were given; never forgotten.
    bool learning_ = false;
    bool doubtful_ = false;  ///< The map has been wrong.
    bool closed_ = false;
    net::Timer tick_timer_;
    std::uint64_t redirections_ = 0;
};

}  // namespace sluice::kvnode
