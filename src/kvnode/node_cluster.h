#pragma once

// All cache nodes together as one store of blocks: our own nodes, Redis, Valkey and Redis Clusters in
// any mixture. An extent lives where rendezvous hashing by membership epoch puts it (kv/placement.h),
// on as many members as are asked for.
//
// Members come and go while requests run. After a join a block that its new owner doesn't have is
// asked for where it was before, and stored at the new owner when it is loaded. A member that is down
// costs nothing: what it has is missing at once, until it answers its probe, one a second.
//
// What a plain Redis doesn't do for us: hold classes and tenants to their limits, slide lives on GET
// (`touch` does, by EXPIRE), tell of what it drops.

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "kv/placement.h"
#include "kv/retention.h"
#include "kvnode/block_store.h"
#include "kvnode/kv_member.h"
#include "kvnode/route.h"
#include "net/event_loop.h"
#include "net/tls.h"

namespace sluice::kvnode {

class NodeCluster final : public BlockStore {
public:
    struct Options {
        std::size_t replicas = 1;
        kv::RetentionTimes times{};
        /// PEM file of the authorities that rediss:// servers are believed by; empty: the system's.
        std::string ca_file{};
        std::chrono::milliseconds connect_time{1'000};
        std::chrono::milliseconds probe_pause{1'000};
    };

    NodeCluster(net::EventLoop& loop, Options options);
    ~NodeCluster() override;

    /// From now on these are the members; those that were there already keep their connections.
    /// The present epoch with the same members changes nothing. Errors change nothing, too:
    /// `kInvalid` for a URL that can't be used, `kOutOfRange` for an epoch that is not above the
    /// present one or for more than limits::kKvStores members.
    [[nodiscard]] Result<void> set_members(std::uint64_t epoch,
                                           const std::vector<std::string>& urls);
    [[nodiscard]] const kv::Placement& placement() const { return placement_; }

    void find(ChainPtr chain, Deadline deadline, OnFound on_found) override;
    [[nodiscard]] std::unique_ptr<Load> load(ChainPtr chain, std::vector<FoundBlock> blocks,
                                             Deadline deadline, OnValue on_value,
                                             std::function<void()> on_done) override;
    void store(ChainPtr chain, std::size_t index, kv::SharedBytes value,
               OnStored on_stored) override;
    void touch(ChainPtr chain, std::vector<FoundBlock> blocks) override;
    /// In the order of the members' names.
    [[nodiscard]] std::vector<StoreStats> stats() const override;

private:
    struct Member {
        StoreUrl address;
        std::shared_ptr<KvMember> node;
    };

    [[nodiscard]] Result<std::vector<StoreUrl>> parse(const std::vector<std::string>& urls);
    [[nodiscard]] Member make(const StoreUrl& address);
    [[nodiscard]] RoutePtr route(const Chain& chain, std::size_t block) const;
    /// On the loop, and only if this is still there.
    void later(std::function<void()> work);

    net::EventLoop& loop_;
    const Options options_;
    kv::Placement placement_;
    std::shared_ptr<const net::TlsTrust> trust_;
    std::vector<Member> members_;  ///< In the order of placement's.
    /// Members no more, but perhaps with answers to come.
    std::vector<std::weak_ptr<KvMember>> former_;
    std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace sluice::kvnode
