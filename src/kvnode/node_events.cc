#include "kvnode/node_events.h"

#include <chrono>
#include <string>

#include "kv/block_name.h"

namespace sluice::kvnode {
namespace {

constexpr std::string_view kDram = "dram";
constexpr std::string_view kSsd = "ssd";

kv::WallTime wall_now() { return std::chrono::system_clock::now(); }

kv::NamedBlock named(const kv::DramTier::Item::Block& block) {
    if (!block.parent) return {.key = block.key, .first = true};
    return {.key = block.key, .parent = *block.parent, .first = *block.parent == kv::BlockKey{}};
}

/// What comes before a block stands in its value, which an index of names doesn't have.
kv::NamedBlock named(const kv::BlockKey& key) { return {.key = key, .first = true}; }

}  // namespace

kv::DramTier::Observer NodeEvents::dram_observer() {
    return {.stored =
                [this](const kv::DramTier::Item& item) {
                    if (item.block) log_.stored({.block = named(*item.block), .tier = kDram});
                },
            .removed =
                [this](const kv::DramTier::Item& item, kv::Removal /*why*/) {
                    if (!item.block) return;
                    const kv::SsdTier* const ssd = ssd_;
                    if (ssd != nullptr && ssd->contains(item.name, wall_now())) {
                        log_.stored({.block = named(*item.block), .tier = kSsd});
                    } else {
                        log_.removed(item.block->key);
                    }
                }};
}

std::function<void(std::span<const kv::SsdEvent>)> NodeEvents::ssd_listener() {
    return [this](std::span<const kv::SsdEvent> events) {
        for (const kv::SsdEvent& event : events) on_ssd(event);
    };
}

void NodeEvents::on_ssd(const kv::SsdEvent& event) {
    const kv::DramTier* const dram = dram_;
    const auto block = kv::parse_block_name(event.name);
    // While it is in memory, that is where it is found.
    if (!block || dram == nullptr || dram->contains(event.name, wall_now())) return;
    const kv::SsdTier* const ssd = ssd_;
    if (event.change == kv::SsdChange::kStored) {
        log_.stored({.block = named(block->key), .tier = kSsd});
    } else if (ssd == nullptr || !ssd->contains(event.name, wall_now())) {
        log_.removed(block->key);
    }
}

void NodeEvents::watch(const kv::DramTier* dram, const kv::SsdTier* ssd) {
    dram_ = dram;
    ssd_ = ssd;
}

KvEventFeed::Snapshot NodeEvents::snapshot() const {
    KvEventFeed::Snapshot snapshot{.next = log_.next(), .blocks = {}};
    const kv::DramTier* const dram = dram_;
    const kv::SsdTier* const ssd = ssd_;
    const kv::WallTime now = wall_now();
    if (dram != nullptr) {
        dram->for_each(now, [&](const kv::DramTier::Item& item) {
            if (item.block) snapshot.blocks.push_back({.block = named(*item.block), .tier = kDram});
        });
    }
    if (ssd != nullptr) {
        ssd->for_each([&](const kv::SsdTier::Entry& entry) {
            const auto block = kv::parse_block_name(entry.name);
            const bool over = entry.expires && *entry.expires <= now;
            if (!block || over || (dram != nullptr && dram->contains(entry.name, now))) return;
            snapshot.blocks.push_back({.block = named(block->key), .tier = kSsd});
        });
    }
    return snapshot;
}

}  // namespace sluice::kvnode
