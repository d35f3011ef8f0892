#include "worker/kv_cache.h"

#include <utility>

#include "kvnode/directory_store.h"
#include "kvnode/store_url.h"
#include "net/tls.h"
#include "worker/dram_store.h"

namespace sluice::worker {
namespace {

/// Lists of blocks that wait to be read, encoded or kept.
constexpr std::size_t kTasks = 4'096;
constexpr std::chrono::seconds kSweepPace{1};
constexpr std::size_t kSweepNames = 1'024;

}  // namespace

KvCache::KvCache(net::EventLoop& loop, const KvOptions& options)
    : loop_(loop), options_(options), tasks_(1, kTasks) {
    tiers_.forced = options.forced;
    tiers_.find_time = options.find_time;
    tiers_.load_time = options.load_time;
    if (options.dram_bytes > 0) make_memory();
    auto nodes = std::make_unique<kvnode::NodeCluster>(
        loop,
        kvnode::NodeCluster::Options{
            .replicas = options.replicas, .times = options.retention, .ca_file = options.ca_file});
    nodes_ = nodes.get();
    node_tier_ =
        &add_tier("node", std::move(nodes), kv::TierSpeed(std::chrono::microseconds(500), 1e9));
    node_tier_->is_spread = true;
    node_tier_->in_use = false;
}

void KvCache::make_memory() {
    dram_ = std::make_unique<kv::DramTier>(
        kv::DramTier::Options{.bytes = options_.dram_bytes,
                              .tenant_bytes = options_.tenant_bytes,
                              .retention = options_.retention},
        kv::DramTier::Observer{.stored =
                                   [this](const kv::DramTier::Item& item) {
                                       if (!item.block || !item.block->parent) return;
                                       for (BlockPlaces* const places : places_)
                                           places->stored_in_memory(
                                               {.key = item.block->key,
                                                .parent = *item.block->parent});
                                   },
                               .removed =
                                   [this](const kv::DramTier::Item& item, kv::Removal) {
                                       if (!item.block) return;
                                       for (BlockPlaces* const places : places_)
                                           places->removed_from_memory(item.block->key);
                                   }});
    add_tier("dram", std::make_unique<DramStore>(loop_, tasks_, *dram_),
             kv::TierSpeed(std::chrono::microseconds(200), 2e9))
        .is_memory = true;
    sweep();
}

KvTier& KvCache::add_tier(std::string name, std::unique_ptr<kvnode::BlockStore> store,
                          const kv::TierSpeed& speed) {
    tiers_.all.push_back(std::make_unique<KvTier>(
        KvTier{.name = std::move(name), .store = std::move(store), .speed = speed}));
    return *tiers_.all.back();
}

Result<void> KvCache::open_stores() {
    // Before somebody tells of the first node that needs it.
    if (!options_.ca_file.empty())
        if (const auto trust = net::TlsTrust::load(options_.ca_file); !trust)
            return std::unexpected(trust.error());
    std::vector<std::string> nodes;
    for (const std::string& text : options_.stores) {
        const auto url = kvnode::parse_store_url(text);
        if (!url) return std::unexpected(url.error());
        if (url->kind != kvnode::StoreUrl::Kind::kDirectory) {
            nodes.push_back(text);
            passwords_[url->name()] = text;
            continue;
        }
        auto directory = kvnode::DirectoryStore::open(
            loop_, {.path = url->path, .times = options_.retention, .faults = options_.faults});
        if (!directory) return std::unexpected(directory.error());
        add_tier("directory", std::move(*directory),
                 kv::TierSpeed(std::chrono::milliseconds(1), 5e8));
    }
    if (nodes.empty()) return {};
    if (auto set = nodes_->set_members(1, nodes); !set) return set;
    node_tier_->in_use = true;
    return {};
}

// The first list is epoch 1 of the placement, so that everything said later comes after it.
Result<void> KvCache::set_nodes(std::uint64_t epoch, const std::vector<std::string>& urls) {
    if (epoch == epoch_ && epoch > 0) return {};
    // Whoever tells of nodes doesn't tell passwords: those of the start are known.
    std::vector<std::string> with_passwords;
    for (const std::string& url : urls) {
        const auto known = passwords_.find(url);
        with_passwords.push_back(known == passwords_.end() ? url : known->second);
    }
    if (auto set = nodes_->set_members(epoch + 1, with_passwords); !set) return set;
    epoch_ = epoch;
    node_tier_->in_use = !urls.empty();
    return {};
}

void KvCache::sweep() {
    static_cast<void>(dram_->sweep(kSweepNames, std::chrono::system_clock::now()));
    sweep_ = loop_.call_after(kSweepPace, [this] { sweep(); });
}

}  // namespace sluice::worker
