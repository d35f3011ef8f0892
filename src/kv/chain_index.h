#pragma once

// The names of a tier in memory: entries, the chains that blocks make, the order in which they go, and
// how many bytes all of it takes. No time, no threads, no policy of when: that is DramTier's.
//
// A block's parent is looked for where the block itself is, and else in the tenant's other class. If it
// isn't here, an empty place stands for it, so that it finds its children when it comes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "kv/block_name.h"
#include "kv/name_table.h"
#include "kv/tier_entry.h"

namespace sluice::kv {

class ChainIndex {
public:
    using Name = NameTable::Name;

    /// `by_tenant`: an order for each tenant is kept, too, so that `take_next` of one can be asked.
    explicit ChainIndex(bool by_tenant) : by_tenant_(by_tenant) {}
    /// From now on one is kept, with what is here; for good.
    void order_by_tenant();
    ~ChainIndex();
    ChainIndex(const ChainIndex&) = delete;
    ChainIndex& operator=(const ChainIndex&) = delete;

    /// That name is about to be asked for.
    void prefetch(const Name& name) const { table_.prefetch(name.hash); }
    /// Null if it isn't here.
    [[nodiscard]] TierEntry* find(const Name& name) const;

    /// What `add` of such an entry may need at most.
    [[nodiscard]] std::size_t bytes_to_add(std::size_t name_bytes, std::size_t value_bytes,
                                           bool block) const;
    /// The name isn't here.
    TierEntry& add(const Name& name, SharedBytes value);
    /// `before` is what `find_parent` found; null: a place is made for the parent.
    TierEntry& add_block(const Name& name, const BlockName& block, const BlockKey& parent,
                         TierEntry* before, SharedBytes value);
    /// The value goes; so does the entry, unless others follow it. Returns the value, so that its owner
    /// can end where the caller wants it to.
    SharedBytes remove(TierEntry& entry);

    void use(TierEntry& entry);
    void hold(TierEntry& entry);
    void unhold(TierEntry& entry);
    /// As if one more block followed it: it stays, even as an empty place.
    void keep(TierEntry& entry);
    void let_go(TierEntry& entry);
    /// The next to go, of all or of a tenant, which must be removed; null if all are held.
    [[nodiscard]] TierEntry* take_next();
    [[nodiscard]] TierEntry* take_next(TierTenant& tenant);

    /// Null if it has nothing here.
    [[nodiscard]] TierTenant* tenant(std::string_view name) const;
    /// What the block of that name would be put behind: a block, an empty place, or null.
    [[nodiscard]] TierEntry* find_parent(std::string_view name, const BlockName& block,
                                         const BlockKey& parent) const;

    /// With all that they take.
    [[nodiscard]] std::size_t bytes() const { return bytes_ + table_.bytes(); }
    [[nodiscard]] std::uint64_t entries() const { return entries_; }
    [[nodiscard]] std::size_t tenants() const { return tenants_.size(); }

    /// As NameTable::scan, without empty places.
    [[nodiscard]] std::uint64_t scan(std::uint64_t cursor, std::size_t count,
                                     FunctionRef<void(TierEntry&)> visit) const;
    void for_each(FunctionRef<void(TierEntry&)> visit) const;
    void for_each_tenant(FunctionRef<void(const TierTenant&)> visit) const;

private:
    using Tenants = std::unordered_map<std::string, std::unique_ptr<TierTenant>>;

    TierEntry& create(const Name& name);
    TierEntry& create_place(const Name& name, TierTenant& tenant, const BlockKey& key,
                            Retention retention);
    void destroy(TierEntry& entry);
    TierTenant& tenant_of(const std::string& name);
    /// The tenant whose order it is in as well; null if there is none.
    [[nodiscard]] TierTenant* ordering(const TierEntry& entry) const {
        return by_tenant_ ? entry.tenant : nullptr;
    }
    void set_value(TierEntry& entry, SharedBytes value);
    void join(TierEntry& child, TierEntry& parent);
    /// Drops it, if it stands for nothing any more, and then those before it.
    void prune(TierEntry& entry);
    void charge(TierEntry& entry, std::size_t cost);

    bool by_tenant_;
    NameTable table_;
    WorthOrder order_;
    Tenants tenants_;
    std::size_t bytes_ = 0;
    std::uint64_t entries_ = 0;
};

}  // namespace sluice::kv
