#include "kvnode/node_store.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "kv/block_name.h"
#include "kv/block_value.h"

namespace sluice::kvnode {
namespace {

kv::WallTime wall_now() { return std::chrono::system_clock::now(); }

std::optional<kv::WallTime> ending(kv::WallTime when) {
    return when == kv::kForever ? std::nullopt : std::optional(when);
}

/// Names that are given up for their age at a time.
constexpr std::size_t kSweep = 4'096;

/// The part of `is_what_it_says` that takes no time: its header has the key of its name.
bool has_its_key(std::string_view name, std::string_view value) {
    const auto named = kv::parse_block_name(name);
    if (!named) return true;
    const auto header = kv::read_block_header(value);
    return header && header->key == named->key;
}

}  // namespace

bool is_what_it_says(std::string_view name, std::string_view value) {
    const auto named = kv::parse_block_name(name);
    if (!named) return true;
    const auto block = kv::decode_block(value);
    return block && block->header.key == named->key;
}

NodeStore::NodeStore(net::EventLoop& loop, const Options& options)
    : loop_(loop), events_(options.events_kept) {
    dram_ = std::make_unique<kv::DramTier>(options.dram, events_.dram_observer());
    events_.watch(dram_.get(), nullptr);
    tasks_ = std::make_unique<TaskPool>(2, 64);
}

Result<std::unique_ptr<NodeStore>> NodeStore::open(net::EventLoop& loop, Options options) {
    std::unique_ptr<NodeStore> store(new NodeStore(loop, options));
    if (options.ssd) {
        options.ssd->listener = store->events_.ssd_listener();
        auto ssd = kv::SsdTier::open(std::move(*options.ssd));
        if (!ssd) return std::unexpected(ssd.error());
        store->ssd_ = std::move(*ssd);
        store->events_.watch(store->dram_.get(), store->ssd_.get());
    }
    return store;
}

NodeStore::~NodeStore() {
    stopping_ = true;
    tasks_.reset();
    // Its last events may still ask it.
    const std::unique_ptr<kv::SsdTier> ssd = std::move(ssd_);
    alive_.reset();
    fetches_.clear();
}

// ---- Reading --------------------------------------------------------------------------------------

kv::SharedBytes NodeStore::in_memory(std::string_view name, kv::WallTime now) {
    kv::SharedBytes value = dram_->get(name, now);
    if (!value || ssd_ == nullptr) return value;
    // Each tier counts a life of its own: a block that memory serves is in use on the SSD as well.
    if (const auto block = kv::parse_block_name(name))
        ssd_->touch(name, dram_->options().retention.end(block->retention, now), now);
    return value;
}

bool NodeStore::only_on_ssd(std::string_view name, kv::WallTime now) const {
    return ssd_ != nullptr && !dram_->contains(name, now) && ssd_->contains(name, now);
}

void NodeStore::fetch(std::string_view name, kv::WallTime now, Got got) {
    if (const auto running = fetches_.find(name); running != fetches_.end()) {
        running->second->waiting.push_back(std::move(got));
        return;
    }
    const auto fetch = std::make_shared<Fetch>();
    fetch->waiting.push_back(std::move(got));
    fetches_.emplace(name, fetch);
    ssd_->get(name, now,
              [this, name = std::string(name), fetch, alive = std::weak_ptr(alive_),
               loop = &loop_](Result<kv::SharedBytes> value) mutable {
                  auto shared = std::make_shared<Result<kv::SharedBytes>>(std::move(value));
                  loop->post([this, name = std::move(name), fetch, alive, shared] {
                      if (!alive.expired()) fetched(name, fetch, std::move(*shared));
                  });
              });
}

void NodeStore::fetched(const std::string& name, const std::shared_ptr<Fetch>& fetch,
                        Result<kv::SharedBytes> value) {
    kv::SharedBytes found;
    if (value) found = fetch->stale ? std::move(*value) : promote(name, std::move(*value));
    if (!fetch->stale) fetches_.erase(name);
    for (const Got& got : std::exchange(fetch->waiting, {})) got(found);
}

// On the loop, so the value's megabytes are not gone through here: the tier's reading thread has checked
// that they are what was put under that name, and whether that was whole is for whoever reads it to
// see, as with what has been in memory all the time.
kv::SharedBytes NodeStore::promote(const std::string& name, kv::SharedBytes value) {
    if (!has_its_key(name, value.bytes)) {
        ++misnamed_;
        log::warn("the SSD had another block under a block's name; it is gone");
        ssd_->erase(name);
        return {};
    }
    const kv::WallTime now = wall_now();
    const auto entry = ssd_->entry(name, now);
    if (!entry) return value;  // Gone meanwhile: for those who asked before, and not for others.
    kv::DramTier::PutOptions options{.expires = entry->expires, .only_if_absent = true};
    if (const auto block = kv::parse_block_name(name)) {
        options.expires = dram_->options().retention.end(block->retention, now);
        ssd_->touch(name, *options.expires, now);
    }
    // Memory that has no room for it doesn't keep it from being served.
    static_cast<void>(dram_->put(name, value, options, now));
    return value;
}

bool NodeStore::contains(std::string_view name, kv::WallTime now) const {
    return dram_->contains(name, now) || (ssd_ != nullptr && ssd_->contains(name, now));
}

std::optional<std::uint64_t> NodeStore::value_bytes(std::string_view name, kv::WallTime now) const {
    if (const kv::SharedBytes value = dram_->peek(name, now)) return value.bytes.size();
    if (ssd_ == nullptr) return std::nullopt;
    const auto entry = ssd_->entry(name, now);
    return entry ? std::optional(entry->value_bytes) : std::nullopt;
}

std::optional<std::chrono::milliseconds> NodeStore::time_left(std::string_view name,
                                                              kv::WallTime now) const {
    using std::chrono::milliseconds;
    if (const auto left = dram_->time_left(name, now)) return left;
    if (ssd_ == nullptr) return std::nullopt;
    const auto entry = ssd_->entry(name, now);
    if (!entry) return std::nullopt;
    if (!entry->expires) return milliseconds::max();
    return std::chrono::duration_cast<milliseconds>(*entry->expires - now);
}

// ---- Writing --------------------------------------------------------------------------------------

NodeStore::Stored NodeStore::put(std::string_view name, kv::SharedBytes value,
                                 const kv::DramTier::PutOptions& options, kv::WallTime now) {
    const auto block = kv::parse_block_name(name);
    if (options.only_if_absent && only_on_ssd(name, now)) {
        if (block) ssd_->touch(name, dram_->options().retention.end(block->retention, now), now);
        return Stored::kWasThere;
    }
    const Stored stored = dram_->put(name, value, options, now);
    if (stored != Stored::kStored || ssd_ == nullptr) return stored;
    forget_fetch(name);
    std::optional<kv::WallTime> expires = options.expires;
    if (block && !expires) expires = dram_->options().retention.end(block->retention, now);
    if (expires) expires = ending(*expires);
    static_cast<void>(ssd_->put(std::string(name), std::move(value), expires,
                                block ? block->retention : kv::Retention::kNone));
    return stored;
}

void NodeStore::forget_fetch(std::string_view name) {
    const auto running = fetches_.find(name);
    if (running == fetches_.end()) return;
    running->second->stale = true;
    fetches_.erase(running);
}

bool NodeStore::erase(std::string_view name, kv::WallTime now) {
    const bool there = contains(name, now);
    forget_fetch(name);
    // First where it would come back from.
    if (ssd_ != nullptr) ssd_->erase(name);
    dram_->erase(name);
    return there;
}

void NodeStore::erase_if(const std::optional<std::string>& tenant,
                         std::optional<kv::Retention> retention,
                         std::function<void(std::uint64_t)> done) {
    for (const auto& [name, fetch] : fetches_) fetch->stale = true;
    fetches_.clear();
    const std::uint64_t in_memory = dram_->erase_if(tenant, retention);
    // What `done` holds belongs to the loop: no other thread may be the one that lets go of it.
    auto tell = [this, tenant, retention, in_memory, alive = std::weak_ptr(alive_), loop = &loop_,
                 done = std::move(done)](std::size_t erased) mutable {
        loop->post([=, this, done = std::move(done)] {
            if (alive.expired()) return;
            // What came back from the SSD meanwhile.
            const std::uint64_t again = ssd_ == nullptr ? 0 : dram_->erase_if(tenant, retention);
            done(std::max<std::uint64_t>(erased, in_memory + again));
        });
    };
    if (ssd_ == nullptr) return tell(0);
    ssd_->erase_if(
        [tenant, retention](std::string_view name) {
            if (!tenant && !retention) return true;
            const auto block = kv::parse_block_name(name);
            return block && (!tenant || block->tenant == *tenant) &&
                   (!retention || block->retention == *retention);
        },
        std::move(tell));
}

bool NodeStore::expire(std::string_view name, kv::WallTime when, kv::WallTime now) {
    dram_->touch(name, now);
    const bool here = dram_->expire(name, when, now);
    const bool below = ssd_ != nullptr && ssd_->contains(name, now);
    // A longer life is news at a minute's notice, any other at once.
    const bool block = kv::parse_block_name(name).has_value();
    if (below && (!block || !ssd_->touch(name, when, now))) ssd_->expire(name, ending(when));
    return here || below;
}

std::optional<bool> NodeStore::pin(std::string_view name, kv::WallTime until, kv::WallTime now,
                                   std::function<void(bool)> done) {
    if (!only_on_ssd(name, now)) return dram_->pin(name, until, now);
    fetch(name, now,
          [this, name = std::string(name), until, done = std::move(done)](
              const kv::SharedBytes& /*there*/) { done(dram_->pin(name, until, wall_now())); });
    return std::nullopt;
}

// ---- All of it ------------------------------------------------------------------------------------

// A cursor is 0, or says by its upper bits which tier it is in: of the SSD's, 30 bits are the segment and
// 22 the slot. First the SSD, then what only memory has, so that nothing is met twice.
std::uint64_t NodeStore::scan(std::uint64_t cursor, std::size_t count, kv::WallTime now,
                              FunctionRef<void(std::string_view)> visit) const {
    constexpr std::uint64_t kInSsd = std::uint64_t{1} << 52;
    constexpr std::uint64_t kInMemory = std::uint64_t{1} << 51;
    constexpr std::uint64_t kSlotBits = 22;
    if (ssd_ != nullptr && (cursor == 0 || (cursor & kInSsd) != 0)) {
        const std::uint64_t place = cursor & (kInSsd - 1);
        kv::SsdTier::ScanCursor at{
            .segment = place >> kSlotBits,
            .slot = static_cast<std::uint32_t>(place & ((1U << kSlotBits) - 1))};
        const bool more = ssd_->scan(at, [&](const kv::SsdTier::Entry& entry) {
            if (!entry.expires || *entry.expires > now) visit(entry.name);
        });
        return more ? kInSsd | (at.segment << kSlotBits) | at.slot : kInMemory;
    }
    const auto next =
        dram_->scan(cursor & (kInMemory - 1), count, now, [&](const kv::DramTier::Item& item) {
            if (ssd_ == nullptr || !ssd_->contains(item.name, now)) visit(item.name);
        });
    return next == 0 ? 0 : kInMemory | next;
}

std::uint64_t NodeStore::entries() const {
    const std::uint64_t on_ssd = ssd_ == nullptr ? 0 : ssd_->stats().entries;
    return std::max(on_ssd, dram_->entries());
}

void NodeStore::snapshot(const std::function<void(KvEventFeed::Snapshot)>& done) {
    const bool taken = tasks_->submit([this, done] { done(events_.snapshot()); });
    if (!taken) done({.next = events_.log().next(), .blocks = {}});
}

void NodeStore::ssd_holdings(std::function<void(std::vector<port::KvHolding>)> done) {
    // What `done` holds belongs to the loop: this thread must not be the one that lets go of it.
    auto tell = [alive = std::weak_ptr(alive_), loop = &loop_,
                 done = std::move(done)](std::vector<port::KvHolding> holdings) mutable {
        loop->post([alive, done = std::move(done), holdings = std::move(holdings)]() mutable {
            if (!alive.expired()) done(std::move(holdings));
        });
    };
    const bool taken =
        ssd_ != nullptr && tasks_->submit([this, tell]() mutable { tell(count_ssd()); });
    if (!taken) tell({});
}

std::vector<port::KvHolding> NodeStore::count_ssd() const {
    std::map<std::pair<std::string, kv::Retention>, port::KvHolding> counted;
    ssd_->for_each([&](const kv::SsdTier::Entry& entry) {
        const auto block = kv::parse_block_name(entry.name);
        if (!block || stopping_) return;
        const std::pair place(block->tenant, block->retention);
        if (counted.size() == port::kKvStatusHoldings && !counted.contains(place)) return;
        port::KvHolding& holding = counted[place];
        ++holding.entries;
        holding.bytes += entry.value_bytes;
    });
    std::vector<port::KvHolding> holdings;
    for (auto& [place, holding] : counted) {
        holding.tenant = place.first;
        holding.retention = std::string(sluice::to_string(place.second));
        holdings.push_back(std::move(holding));
    }
    return holdings;
}

void NodeStore::sweep(kv::WallTime now) { dram_->sweep(kSweep, now); }

void NodeStore::sync(std::function<void(Result<void>)> done) {
    const auto tell = [alive = std::weak_ptr(alive_), loop = &loop_,
                       done = std::move(done)](const Result<void>& result) {
        loop->post([=] {
            if (!alive.expired()) done(result);
        });
    };
    if (ssd_ == nullptr) return tell({});
    ssd_->sync(tell);
}

}  // namespace sluice::kvnode
