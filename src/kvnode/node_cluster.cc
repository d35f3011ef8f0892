#include "kvnode/node_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "kv/block_value.h"
#include "kvnode/block_put.h"
#include "kvnode/chain_find.h"
#include "kvnode/chain_load.h"
#include "kvnode/redis_cluster.h"
#include "kvnode/resp_node.h"

namespace sluice::kvnode {
namespace {

/// Members asked for a block that its owners don't have. Each costs a trip, for cold prompts, too.
constexpr std::size_t kFormerOwnersAsked = 2;

class Handle final : public Load {
public:
    explicit Handle(std::shared_ptr<ChainLoad> load) : load_(std::move(load)) {}
    ~Handle() override { load_->cancel(); }

private:
    std::shared_ptr<ChainLoad> load_;
};

}  // namespace

NodeCluster::NodeCluster(net::EventLoop& loop, Options options)
    : loop_(loop), options_(std::move(options)), placement_(options_.replicas) {}

NodeCluster::~NodeCluster() {
    for (const Member& member : members_) member.node->close();
    for (const auto& former : former_)
        if (const auto node = former.lock()) node->close();
}

void NodeCluster::later(std::function<void()> work) {
    loop_.post([weak = std::weak_ptr(alive_), work = std::move(work)] {
        if (weak.lock() != nullptr) work();
    });
}

Result<std::vector<StoreUrl>> NodeCluster::parse(const std::vector<std::string>& urls) {
    std::vector<StoreUrl> addresses;
    for (const std::string& url : urls) {
        auto address = parse_store_url(url);
        if (!address) return std::unexpected(address.error());
        if (address->kind == StoreUrl::Kind::kDirectory)
            return std::unexpected(Error::invalid("a directory is no cache node"));
        if (address->secure && trust_ == nullptr) {
            auto trust = net::TlsTrust::load(options_.ca_file);
            if (!trust) return std::unexpected(trust.error());
            trust_ = *std::move(trust);
        }
        addresses.push_back(*std::move(address));
    }
    std::ranges::sort(addresses, {}, &StoreUrl::name);
    const auto twice = std::ranges::unique(addresses, {}, &StoreUrl::name);
    addresses.erase(twice.begin(), twice.end());
    if (addresses.size() > limits::kKvStores)
        return std::unexpected(
            Error::out_of_range("the number of cache nodes", addresses.size(), limits::kKvStores));
    return addresses;
}

NodeCluster::Member NodeCluster::make(const StoreUrl& address) {
    const MemberOptions options{.address = address,
                                .trust = address.secure ? trust_ : nullptr,
                                .connect_time = options_.connect_time,
                                .probe_pause = options_.probe_pause};
    if (address.kind == StoreUrl::Kind::kCluster)
        return {.address = address, .node = RedisCluster::make(loop_, options)};
    return {.address = address, .node = std::make_shared<RespNode>(loop_, options)};
}

Result<void> NodeCluster::set_members(std::uint64_t epoch, const std::vector<std::string>& urls) {
    auto addresses = parse(urls);
    if (!addresses) return std::unexpected(addresses.error());
    std::vector<std::string> names;
    std::ranges::transform(*addresses, std::back_inserter(names), &StoreUrl::name);
    if (epoch == placement_.epoch() && names == placement_.members()) return {};
    if (!placement_.set_members(epoch, std::move(names))) {
        return std::unexpected(
            Error(ErrorCode::kOutOfRange,
                  fmt::format("membership {} is not later than {}", epoch, placement_.epoch())));
    }
    std::vector<Member> before = std::exchange(members_, {});
    for (const StoreUrl& address : *addresses) {
        const auto there = std::ranges::find(before, address, &Member::address);
        if (there == before.end()) {
            members_.push_back(make(address));
        } else {
            members_.push_back(std::move(*there));
            before.erase(there);
        }
    }
    std::erase_if(former_, [](const auto& former) { return former.expired(); });
    for (const Member& member : before) former_.emplace_back(member.node);
    return {};
}

RoutePtr NodeCluster::route(const Chain& chain, std::size_t block) const {
    const kv::BlockKey& extent = chain.keys[kv::extent_start(block)];
    auto route = std::make_shared<Route>();
    for (const std::size_t member : placement_.owners(extent))
        route->members.push_back(members_[member].node);
    route->owners = route->members.size();
    std::vector<std::size_t> former = placement_.previous_owners(extent);
    former.resize(std::min(former.size(), kFormerOwnersAsked));
    for (const std::size_t member : former) route->members.push_back(members_[member].node);
    return route;
}

void NodeCluster::find(ChainPtr chain, Deadline deadline, OnFound on_found) {
    std::vector<RoutePtr> routes;
    for (std::size_t block = 0; block < chain->keys.size(); block += kv::kExtentBlocks)
        routes.push_back(route(*chain, block));
    const auto find = std::make_shared<ChainFind>(std::move(chain), std::move(routes), deadline,
                                                  std::move(on_found));
    if (!find->start()) later([find] { find->finish(); });
}

std::unique_ptr<Load> NodeCluster::load(ChainPtr chain, std::vector<FoundBlock> blocks,
                                        Deadline deadline, OnValue on_value,
                                        std::function<void()> on_done) {
    std::vector<RoutePtr> routes;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        const bool same =
            i > 0 && kv::extent_start(blocks[i].index) == kv::extent_start(blocks[i - 1].index);
        routes.push_back(same ? routes.back() : route(*chain, blocks[i].index));
    }
    auto load = std::make_shared<ChainLoad>(std::move(chain), std::move(blocks), std::move(routes),
                                            options_.times, deadline, std::move(on_value),
                                            std::move(on_done));
    if (!load->start()) later([load] { load->finish(); });
    return std::make_unique<Handle>(std::move(load));
}

void NodeCluster::store(ChainPtr chain, std::size_t index, kv::SharedBytes value,
                        OnStored on_stored) {
    const bool kept = chain->retention != kv::Retention::kNone;
    const auto header = kv::read_block_start(value.bytes);
    if (!kept || !header || header->key != chain->keys[index])
        return later([on_stored = std::move(on_stored)] { on_stored(Stored::kFailed); });
    const auto put = std::make_shared<BlockPut>(
        kv::to_wire(name_of(*chain, {.index = index, .retention = chain->retention})),
        std::move(value), options_.times.of(chain->retention), route(*chain, index),
        std::move(on_stored));
    if (!put->start()) later([put] { put->finish(); });
}

void NodeCluster::touch(ChainPtr chain, std::vector<FoundBlock> blocks) {
    std::ranges::sort(blocks, std::ranges::greater(), &FoundBlock::index);
    RoutePtr way;
    std::size_t extent = SIZE_MAX;
    for (const FoundBlock& block : blocks) {
        if (std::exchange(extent, kv::extent_start(block.index)) != kv::extent_start(block.index))
            way = route(*chain, block.index);
        const std::string name = kv::to_wire(name_of(*chain, block));
        const auto life =
            std::chrono::ceil<std::chrono::seconds>(options_.times.of(block.retention));
        for (std::size_t owner = 0; owner < way->owners; ++owner) {
            KvMember& member = *way->members[owner];
            if (!member.up(Lane::kLookUp, name)) continue;
            member.call(Lane::kLookUp, {.words = {"EXPIRE", name, std::to_string(life.count())}},
                        store_deadline(), [](const auto&) {});
        }
    }
}

std::vector<StoreStats> NodeCluster::stats() const {
    std::vector<StoreStats> stats;
    for (const Member& member : members_) {
        stats.push_back(member.node->stats);
        stats.back().up = member.node->up(Lane::kLookUp, {});
    }
    return stats;
}

}  // namespace sluice::kvnode
