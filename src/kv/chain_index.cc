#include "kv/chain_index.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace sluice::kv {
namespace {

/// Of a tenant in its map.
std::size_t tenant_cost(std::size_t name_bytes) {
    return allocated(sizeof(TierTenant)) + 2 * allocated(name_bytes + 1) + 96;
}

/// The name of another block of the same tenant and class: a name ends with its key.
std::string with_key(std::string_view name, const BlockKey& key) {
    std::string other(name.substr(0, name.size() - 2 * key.size()));
    return other += to_hex(key);
}

Retention other(Retention retention) {
    return retention == Retention::kAgent ? Retention::kChat : Retention::kAgent;
}

}  // namespace

ChainIndex::~ChainIndex() {
    std::vector<NamedEntry*> all;
    all.reserve(table_.size());
    std::uint64_t cursor = 0;
    do {
        cursor = table_.scan(cursor, 1'024, [&](NamedEntry& entry) { all.push_back(&entry); });
    } while (cursor != 0);
    for (NamedEntry* const entry : all) delete static_cast<TierEntry*>(entry);
}

// ---- Names ----------------------------------------------------------------------------------------

TierEntry* ChainIndex::find(const Name& name) const {
    auto* const entry = static_cast<TierEntry*>(table_.find(name.text, name.hash));
    return entry != nullptr && entry->here() ? entry : nullptr;
}

TierEntry& ChainIndex::create(const Name& name) {
    auto entry = std::make_unique<TierEntry>();
    entry->name = name.text;
    entry->hash = name.hash;
    table_.insert(*entry);
    return *entry.release();
}

void ChainIndex::charge(TierEntry& entry, std::size_t cost) {
    bytes_ = bytes_ - entry.cost + cost;
    if (entry.tenant != nullptr) entry.tenant->bytes = entry.tenant->bytes - entry.cost + cost;
    entry.cost = cost;
}

void ChainIndex::destroy(TierEntry& entry) {
    // The end of its last hold put it back into the orders.
    order_.remove(static_cast<TierNode&>(entry));
    if (TierTenant* const its = ordering(entry)) its->order.remove(static_cast<TenantNode&>(entry));
    charge(entry, 0);
    table_.erase(entry);
    if (TierTenant* const tenant = entry.tenant; tenant != nullptr && --tenant->nodes == 0) {
        bytes_ -= tenant_cost(tenant->name.size());
        tenants_.erase(tenants_.find(tenant->name));
    }
    delete &entry;
}

void ChainIndex::set_value(TierEntry& entry, SharedBytes value) {
    SLUICE_ASSERT(value.owner != nullptr);
    entry.value = std::move(value);
    charge(entry, entry_cost(entry.name.size(), entry.value.bytes.size()));
    ++entries_;
    order_.add(static_cast<TierNode&>(entry));
    if (entry.tenant == nullptr) return;
    ++entry.tenant->entries;
    if (by_tenant_) entry.tenant->order.add(static_cast<TenantNode&>(entry));
}

std::size_t ChainIndex::bytes_to_add(std::size_t name_bytes, std::size_t value_bytes,
                                     bool block) const {
    const std::size_t entry = entry_cost(name_bytes, value_bytes) + table_.growth_bytes();
    // A place for the parent, whose name is as long, and the tenant, whose name is shorter.
    return block ? entry + entry_cost(name_bytes, 0) + tenant_cost(name_bytes) : entry;
}

TierEntry& ChainIndex::add(const Name& name, SharedBytes value) {
    TierEntry& entry = create(name);
    set_value(entry, std::move(value));
    return entry;
}

// ---- Chains ---------------------------------------------------------------------------------------

TierTenant& ChainIndex::tenant_of(const std::string& name) {
    auto& tenant = tenants_[name];
    if (!tenant) {
        tenant = std::make_unique<TierTenant>();
        tenant->name = name;
        bytes_ += tenant_cost(name.size());
    }
    return *tenant;
}

TierEntry* ChainIndex::find_parent(std::string_view name, const BlockName& block,
                                   const BlockKey& parent) const {
    const std::string before = with_key(name, parent);
    auto* const own = static_cast<TierEntry*>(table_.find(before, NameTable::hash_of(before)));
    if (own != nullptr && own->here()) return own;
    const std::string there =
        to_wire({.tenant = block.tenant, .retention = other(block.retention), .key = parent});
    TierEntry* const elsewhere = find(Name(there));
    return elsewhere != nullptr ? elsewhere : own;
}

TierEntry& ChainIndex::create_place(const Name& name, TierTenant& tenant, const BlockKey& key,
                                    Retention retention) {
    TierEntry& place = create(name);
    place.tenant = &tenant;
    ++tenant.nodes;
    place.key = key;
    place.retention = retention;
    place.expires = WallTime{};
    charge(place, entry_cost(name.text.size(), 0));
    return place;
}

TierEntry& ChainIndex::add_block(const Name& name, const BlockName& block, const BlockKey& parent,
                                 TierEntry* before, SharedBytes value) {
    auto* place = static_cast<TierEntry*>(table_.find(name.text, name.hash));
    TierTenant& tenant = before != nullptr ? *before->tenant : tenant_of(block.tenant);
    if (place == nullptr) place = &create_place(name, tenant, block.key, block.retention);
    SLUICE_ASSERT(!place->here());
    if (place->parent == nullptr && parent != block.key) {
        if (before == nullptr) {
            const std::string last = with_key(name.text, parent);
            before = &create_place(Name(last), tenant, parent, block.retention);
        }
        join(*place, *before);
    }
    set_value(*place, std::move(value));
    return *place;
}

void ChainIndex::join(TierEntry& child, TierEntry& parent) {
    // Keys are digests, so a chain that leads back to itself was made up: it is left cut.
    if (child.children > 0)
        for (const TierEntry* each = &parent; each != nullptr; each = each->parent)
            if (each == &child) return;
    child.parent = &parent;
    keep(parent);
}

void ChainIndex::keep(TierEntry& entry) {
    ++entry.children;
    hold(entry);
}

void ChainIndex::let_go(TierEntry& entry) {
    --entry.children;
    unhold(entry);
    prune(entry);
}

SharedBytes ChainIndex::remove(TierEntry& entry) {
    SLUICE_ASSERT(entry.here());
    SharedBytes value = std::exchange(entry.value, {});
    order_.remove(static_cast<TierNode&>(entry));
    --entries_;
    if (entry.tenant != nullptr) {
        if (by_tenant_) entry.tenant->order.remove(static_cast<TenantNode&>(entry));
        --entry.tenant->entries;
    }
    charge(entry, entry_cost(entry.name.size(), 0));
    prune(entry);
    return value;
}

void ChainIndex::prune(TierEntry& entry) {
    TierEntry* each = &entry;
    while (each != nullptr && !each->here() && each->children == 0) {
        TierEntry* const parent = each->parent;
        // Chains go from their end on, so the parent is likely the next.
        if (parent != nullptr) table_.prefetch(parent->hash);
        destroy(*each);
        if (parent != nullptr) {
            --parent->children;
            unhold(*parent);
        }
        each = parent;
    }
}

// ---- Order ----------------------------------------------------------------------------------------

void ChainIndex::use(TierEntry& entry) {
    order_.use(static_cast<TierNode&>(entry));
    if (TierTenant* const its = ordering(entry)) its->order.use(static_cast<TenantNode&>(entry));
}

void ChainIndex::hold(TierEntry& entry) {
    order_.hold(static_cast<TierNode&>(entry));
    if (TierTenant* const its = ordering(entry)) its->order.hold(static_cast<TenantNode&>(entry));
}

void ChainIndex::unhold(TierEntry& entry) {
    order_.unhold(static_cast<TierNode&>(entry));
    if (TierTenant* const its = ordering(entry)) its->order.unhold(static_cast<TenantNode&>(entry));
}

TierEntry* ChainIndex::take_next() {
    WorthOrder::Node* const node = order_.take_next();
    return node == nullptr ? nullptr : &static_cast<TierEntry&>(static_cast<TierNode&>(*node));
}

void ChainIndex::order_by_tenant() {
    if (std::exchange(by_tenant_, true)) return;
    for (const auto& [name, tenant] : tenants_) tenant->order.begin_as(order_);
    for_each([](TierEntry& entry) {
        if (entry.tenant == nullptr) return;
        entry.tenant->order.add_as(static_cast<TenantNode&>(entry), static_cast<TierNode&>(entry));
        for (TierEntry* place = entry.parent; place != nullptr && !place->here();
             place = place->parent)
            WorthOrder::hold_as(static_cast<TenantNode&>(*place), static_cast<TierNode&>(*place));
    });
}

TierEntry* ChainIndex::take_next(TierTenant& tenant) {
    SLUICE_ASSERT(by_tenant_);
    WorthOrder::Node* const node = tenant.order.take_next();
    return node == nullptr ? nullptr : &static_cast<TierEntry&>(static_cast<TenantNode&>(*node));
}

// ---- All of them ----------------------------------------------------------------------------------

TierTenant* ChainIndex::tenant(std::string_view name) const {
    const auto at = tenants_.find(std::string(name));
    return at == tenants_.end() ? nullptr : at->second.get();
}

std::uint64_t ChainIndex::scan(std::uint64_t cursor, std::size_t count,
                               FunctionRef<void(TierEntry&)> visit) const {
    return table_.scan(cursor, count, [&](NamedEntry& each) {
        auto& entry = static_cast<TierEntry&>(each);
        if (entry.here()) visit(entry);
    });
}

void ChainIndex::for_each(FunctionRef<void(TierEntry&)> visit) const {
    std::uint64_t cursor = 0;
    do {
        cursor = scan(cursor, 1'024, visit);
    } while (cursor != 0);
}

void ChainIndex::for_each_tenant(FunctionRef<void(const TierTenant&)> visit) const {
    for (const auto& [name, tenant] : tenants_) visit(*tenant);
}

}  // namespace sluice::kv
