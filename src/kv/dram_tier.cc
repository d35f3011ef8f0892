#include "kv/dram_tier.h"

#include <algorithm>

#include "base/limits.h"
#include "kv/block_value.h"

namespace sluice::kv {
namespace {

/// Of a lease in its set.
constexpr std::size_t kPinBytes = 64;

bool same_payload(std::string_view left, const BlockHeader& right) {
    const auto header = read_block_header(left);
    return header && header->payload_checksum == right.payload_checksum;
}

}  // namespace

DramTier::DramTier(const Options& options, Observer observer)
    : options_(options), observer_(std::move(observer)), index_(options.tenant_bytes > 0) {}

DramTier::~DramTier() = default;

// ---- Reading --------------------------------------------------------------------------------------

TierEntry* DramTier::live(std::string_view name, WallTime now) const {
    TierEntry* const entry = index_.find(ChainIndex::Name(name));
    return entry != nullptr && entry->expires > now ? entry : nullptr;
}

TierEntry* DramTier::find(const ChainIndex::Name& name, WallTime now, Leaving& leaving) {
    TierEntry* const entry = index_.find(name);
    if (entry == nullptr || entry->expires > now) return entry;
    remove(*entry, Removal::kExpired, leaving);
    return nullptr;
}

SharedBytes DramTier::get(std::string_view name, WallTime now) {
    Leaving leaving;
    const std::scoped_lock lock(mutex_);
    TierEntry* const entry = find(ChainIndex::Name(name), now, leaving);
    ++(entry != nullptr ? stats_.hits : stats_.misses);
    if (entry == nullptr) return {};
    use(*entry, now);
    return entry->value;
}

bool DramTier::touch(std::string_view name, WallTime now) {
    Leaving leaving;
    const std::scoped_lock lock(mutex_);
    TierEntry* const entry = find(ChainIndex::Name(name), now, leaving);
    if (entry != nullptr) use(*entry, now);
    return entry != nullptr;
}

bool DramTier::contains(std::string_view name, WallTime now) const {
    const std::scoped_lock lock(mutex_);
    return live(name, now) != nullptr;
}

SharedBytes DramTier::peek(std::string_view name, WallTime now) const {
    const std::scoped_lock lock(mutex_);
    const TierEntry* const entry = live(name, now);
    return entry != nullptr ? entry->value : SharedBytes{};
}

void DramTier::use(TierEntry& entry, WallTime now) {
    index_.use(entry);
    if (!entry.is_block()) return;
    const WallTime end = options_.retention.end(entry.retention, now);
    if (entry.expires < end - options_.retention.slack(entry.retention)) extend(entry, end);
}

// Those before it live as long, so that nobody finds a chain's end without its start. As ends that are
// close to each other are left alone, only the first use of a chain in a while walks all of it.
void DramTier::extend(TierEntry& entry, WallTime expires) {
    set_end(entry, std::max(entry.expires, expires));
    for (TierEntry* each = entry.parent; each != nullptr; each = each->parent) {
        if (each->expires >= expires - options_.retention.slack(each->retention)) return;
        set_end(*each, expires);
    }
}

// Places of blocks that are not here have an end as well, but don't count.
void DramTier::set_end(TierEntry& entry, WallTime end) {
    if (entry.here() && entry.expires != kForever) --stats_.mortal;
    if (entry.here() && end != kForever) ++stats_.mortal;
    entry.expires = end;
}

// ---- Writing --------------------------------------------------------------------------------------

DramTier::Stored DramTier::put(std::string_view name, SharedBytes value, const PutOptions& options,
                               WallTime now) {
    const auto block = parse_block_name(name);
    const ChainIndex::Name hashed(name);
    Leaving leaving;
    const std::scoped_lock lock(mutex_);
    index_.prefetch(hashed);
    end_leases(now);
    const bool fits =
        value.owner != nullptr && name.size() <= limits::kKvNameBytes &&
        index_.bytes_to_add(name.size(), value.bytes.size(), block.has_value()) <= options_.bytes;
    if (!fits) return count(Stored::kRefused);
    return count(block ? put_block(hashed, *block, std::move(value), options, now, leaving)
                       : put_plain(hashed, std::move(value), options, now, leaving));
}

DramTier::Stored DramTier::count(Stored stored) {
    switch (stored) {
        case Stored::kStored: ++stats_.stored; break;
        case Stored::kWasThere: ++stats_.was_there; break;
        case Stored::kDiffers: ++stats_.differs; break;
        case Stored::kRefused: ++stats_.refused; break;
    }
    return stored;
}

DramTier::Stored DramTier::put_block(const ChainIndex::Name& name, const BlockName& block,
                                     SharedBytes value, const PutOptions& options, WallTime now,
                                     Leaving& leaving) {
    const auto header = read_block_header(value.bytes);
    if (!header || header->key != block.key) {
        ++stats_.corrupt;
        return Stored::kRefused;
    }
    const WallTime end = options.expires.value_or(options_.retention.end(block.retention, now));
    if (end <= now) return Stored::kRefused;
    if (TierEntry* const there = find(name, now, leaving); there != nullptr) {
        if (!same_payload(there->value.bytes, *header)) return Stored::kDiffers;
        use(*there, now);
        return Stored::kWasThere;
    }
    const std::size_t bytes = index_.bytes_to_add(name.text.size(), value.bytes.size(), true);
    TierEntry* const before = index_.find_parent(name.text, block, header->parent);
    if (before != nullptr) index_.keep(*before);
    const bool room = make_tenant_room(block.tenant, bytes, leaving) && make_room(bytes, leaving);
    if (room) {
        TierEntry& entry = index_.add_block(name, block, header->parent, before, std::move(value));
        entry.expires = kForever;  // Whatever its place had.
        set_end(entry, end);
        extend(entry, end);
        report_stored(entry);
    }
    if (before != nullptr) index_.let_go(*before);
    return room ? Stored::kStored : Stored::kRefused;
}

DramTier::Stored DramTier::put_plain(const ChainIndex::Name& name, SharedBytes value,
                                     const PutOptions& options, WallTime now, Leaving& leaving) {
    const WallTime end = options.expires.value_or(kForever);
    TierEntry* there = find(name, now, leaving);
    if (there != nullptr && options.only_if_absent) return Stored::kWasThere;
    if (there != nullptr) {
        // It stays until there is room for the new one.
        index_.hold(*there);
        const bool room = make_room(entry_cost(name.text.size(), value.bytes.size()), leaving);
        index_.unhold(*there);
        if (!room) return Stored::kRefused;
        remove(*there, Removal::kReplaced, leaving);
    } else if (!make_room(index_.bytes_to_add(name.text.size(), value.bytes.size(), false),
                          leaving)) {
        return Stored::kRefused;
    }
    TierEntry& entry = index_.add(name, std::move(value));
    set_end(entry, end);
    report_stored(entry);
    return Stored::kStored;
}

bool DramTier::make_room(std::size_t bytes, Leaving& leaving) {
    while (index_.bytes() + kPinBytes * pins_.size() + bytes > options_.bytes) {
        TierEntry* const next = index_.take_next();
        if (next == nullptr) return false;
        remove(*next, Removal::kEvicted, leaving);
    }
    return true;
}

std::size_t DramTier::bound_of(std::string_view tenant) const {
    const auto own = bounds_.find(tenant);
    return own == bounds_.end() ? options_.tenant_bytes : own->second;
}

void DramTier::bound_tenants(TenantBounds bounds) {
    Leaving leaving;
    const std::scoped_lock lock(mutex_);
    bounds_ = std::move(bounds);
    if (!bounds_.empty()) index_.order_by_tenant();
    std::vector<std::string> tenants;
    index_.for_each_tenant([&](const TierTenant& tenant) { tenants.push_back(tenant.name); });
    for (const std::string& tenant : tenants)
        static_cast<void>(make_tenant_room(tenant, 0, leaving));
}

bool DramTier::make_tenant_room(std::string_view tenant, std::size_t bytes, Leaving& leaving) {
    const std::size_t bound = bound_of(tenant);
    if (bound == 0) return true;
    while (true) {
        // A tenant whose last entry goes is gone with it.
        TierTenant* const bounded = index_.tenant(tenant);
        if ((bounded == nullptr ? 0 : bounded->bytes) + bytes <= bound) return true;
        TierEntry* const next = bounded == nullptr ? nullptr : index_.take_next(*bounded);
        if (next == nullptr) return false;
        ++bounded->over_bound;
        remove(*next, Removal::kTenantBound, leaving);
    }
}

void DramTier::remove(TierEntry& entry, Removal why, Leaving& leaving) {
    ++stats_.removed[static_cast<std::size_t>(why)];
    if (observer_.removed) observer_.removed(item_of(entry), why);
    if (entry.pinned()) unpin(entry);
    if (entry.expires != kForever) --stats_.mortal;
    TierUse& use = use_of(entry);
    --use.entries;
    use.bytes -= entry.cost;
    leaving.push_back(index_.remove(entry));
}

bool DramTier::erase(std::string_view name, Removal why) {
    Leaving leaving;
    const std::scoped_lock lock(mutex_);
    TierEntry* const entry = index_.find(ChainIndex::Name(name));
    if (entry != nullptr) remove(*entry, why, leaving);
    return entry != nullptr;
}

std::size_t DramTier::erase_if(std::optional<std::string_view> tenant,
                               std::optional<Retention> retention) {
    Leaving leaving;
    const std::scoped_lock lock(mutex_);
    std::vector<TierEntry*> found;
    index_.for_each([&](TierEntry& entry) {
        const bool named = !tenant || (entry.is_block() && entry.tenant->name == *tenant);
        const bool classed = !retention || (entry.is_block() && entry.retention == *retention);
        if (named && classed) found.push_back(&entry);
    });
    for (TierEntry* const entry : found) remove(*entry, Removal::kErased, leaving);
    return found.size();
}

// ---- Time -----------------------------------------------------------------------------------------

bool DramTier::expire(std::string_view name, WallTime when, WallTime now) {
    Leaving leaving;
    const std::scoped_lock lock(mutex_);
    TierEntry* const entry = find(ChainIndex::Name(name), now, leaving);
    if (entry == nullptr) return false;
    if (when <= now) {
        remove(*entry, Removal::kExpired, leaving);
    } else {
        set_end(*entry, std::max(when, entry->pinned_until));
    }
    return true;
}

std::optional<std::chrono::milliseconds> DramTier::time_left(std::string_view name,
                                                             WallTime now) const {
    const std::scoped_lock lock(mutex_);
    const TierEntry* const entry = live(name, now);
    if (entry == nullptr) return std::nullopt;
    if (entry->expires == kForever) return std::chrono::milliseconds::max();
    return std::chrono::ceil<std::chrono::milliseconds>(entry->expires - now);
}

bool DramTier::pin(std::string_view name, WallTime until, WallTime now) {
    Leaving leaving;
    const std::scoped_lock lock(mutex_);
    end_leases(now);
    TierEntry* const entry = find(ChainIndex::Name(name), now, leaving);
    if (entry == nullptr) return false;
    if (entry->pinned()) unpin(*entry);
    until = std::min(until, now + std::chrono::seconds(limits::kKvPinSeconds));
    const bool much =
        pins_.size() >= limits::kKvPins || pinned_bytes_ + entry->cost > options_.bytes / 2;
    if (until <= now || much) return until <= now;
    index_.hold(*entry);
    if (!make_room(kPinBytes, leaving)) {
        index_.unhold(*entry);
        return false;
    }
    entry->pinned_until = until;
    extend(*entry, until);
    pins_.emplace(until, entry);
    pinned_bytes_ += entry->cost;
    return true;
}

void DramTier::unpin(TierEntry& entry) {
    pins_.erase({entry.pinned_until, &entry});
    pinned_bytes_ -= entry.cost;
    entry.pinned_until = WallTime{};
    index_.unhold(entry);
}

void DramTier::end_leases(WallTime now) {
    while (!pins_.empty() && pins_.begin()->first <= now) unpin(*pins_.begin()->second);
}

std::size_t DramTier::sweep(std::size_t count, WallTime now) {
    Leaving leaving;
    const std::scoped_lock lock(mutex_);
    end_leases(now);
    std::vector<TierEntry*> over;
    sweep_cursor_ = index_.scan(sweep_cursor_, count, [&](TierEntry& entry) {
        if (entry.expires <= now) over.push_back(&entry);
    });
    for (TierEntry* const entry : over) remove(*entry, Removal::kExpired, leaving);
    return over.size();
}

// ---- What is here ---------------------------------------------------------------------------------

DramTier::Item DramTier::item_of(const TierEntry& entry) {
    Item item{.name = entry.name,
              .value = entry.value,
              .expires = entry.expires,
              .pinned = entry.pinned(),
              .block = std::nullopt};
    if (!entry.is_block()) return item;
    item.block = Item::Block{.tenant = entry.tenant->name,
                             .retention = entry.retention,
                             .key = entry.key,
                             .parent = std::nullopt};
    if (entry.parent != nullptr) item.block->parent = entry.parent->key;
    return item;
}

void DramTier::report_stored(const TierEntry& entry) {
    TierUse& use = use_of(entry);
    ++use.entries;
    use.bytes += entry.cost;
    if (observer_.stored) observer_.stored(item_of(entry));
}

TierUse& DramTier::use_of(const TierEntry& entry) {
    if (!entry.is_block()) return stats_.other;
    return entry.retention == Retention::kAgent ? stats_.agent : stats_.chat;
}

std::uint64_t DramTier::scan(std::uint64_t cursor, std::size_t count, WallTime now,
                             FunctionRef<void(const Item&)> visit) const {
    const std::scoped_lock lock(mutex_);
    return index_.scan(cursor, count, [&](TierEntry& entry) {
        if (entry.expires > now) visit(item_of(entry));
    });
}

void DramTier::for_each(WallTime now, FunctionRef<void(const Item&)> visit) const {
    std::uint64_t cursor = 0;
    do {
        cursor = scan(cursor, 1'024, now, visit);
    } while (cursor != 0);
}

std::size_t DramTier::bytes() const {
    const std::scoped_lock lock(mutex_);
    return index_.bytes() + kPinBytes * pins_.size();
}

std::uint64_t DramTier::entries() const {
    const std::scoped_lock lock(mutex_);
    return index_.entries();
}

DramStats DramTier::stats() const {
    const std::scoped_lock lock(mutex_);
    DramStats stats = stats_;
    stats.limit = options_.bytes;
    stats.bytes = index_.bytes() + kPinBytes * pins_.size();
    stats.entries = index_.entries();
    stats.pinned = pins_.size();
    stats.pinned_bytes = pinned_bytes_;
    stats.tenants.reserve(index_.tenants());
    index_.for_each_tenant([&](const TierTenant& tenant) {
        stats.tenants.push_back({.name = tenant.name,
                                 .entries = tenant.entries,
                                 .bytes = tenant.bytes,
                                 .over_bound = tenant.over_bound});
    });
    std::ranges::sort(stats.tenants, {}, &DramStats::Tenant::name);
    return stats;
}

}  // namespace sluice::kv
