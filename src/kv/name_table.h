#pragma once

// Entries by name: a hash table whose entries are allocated by their owner and know how large the
// table itself is, so that a tier can count it.
//
// Buckets are a power of two, and `scan` goes through them in an order that stays right when their
// number changes between two calls: what is here during a whole scan is met at least once.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace sluice::kv {

struct NamedEntry {
    std::string name;  ///< Doesn't change while it is in a table.
    std::uint64_t hash = 0;
    NamedEntry* next = nullptr;  ///< In its bucket.
};

class NameTable {
public:
    NameTable() : buckets_(kBucketsLeast) {}

    [[nodiscard]] static std::uint64_t hash_of(std::string_view name);

    /// A name that is hashed once, whatever is then done with it.
    struct Name {
        std::string_view text;
        std::uint64_t hash;
        explicit Name(std::string_view name) : text(name), hash(hash_of(name)) {}
    };

    /// A name of that hash is about to be asked for: its bucket is most likely in no cache.
    void prefetch(std::uint64_t hash) const {
        __builtin_prefetch(static_cast<const void*>(&buckets_[bucket(hash)]));
    }
    [[nodiscard]] NamedEntry* find(std::string_view name, std::uint64_t hash) const;
    /// Its name isn't here yet; its hash is set.
    void insert(NamedEntry& entry);
    void erase(NamedEntry& entry);

    [[nodiscard]] std::size_t size() const { return size_; }
    /// What the table itself takes; entries come on top.
    [[nodiscard]] std::size_t bytes() const { return buckets_.size() * sizeof(NamedEntry*); }
    /// So much more while the next `insert` is at work: most times none.
    [[nodiscard]] std::size_t growth_bytes() const { return full() ? 2 * bytes() : 0; }

    /// Calls `visit` for the entries of the next buckets, until there were at least `count` entries or
    /// as many buckets; `visit` changes nothing. Starts at cursor 0 and goes on with what it returned,
    /// until that is 0.
    [[nodiscard]] std::uint64_t scan(std::uint64_t cursor, std::size_t count,
                                     FunctionRef<void(NamedEntry&)> visit) const;

private:
    static constexpr std::size_t kBucketsLeast = 64;

    [[nodiscard]] std::size_t bucket(std::uint64_t hash) const {
        return hash & (buckets_.size() - 1);
    }
    /// Most buckets are empty or have one entry: each further one is likely in no cache.
    [[nodiscard]] bool full() const { return 2 * size_ >= buckets_.size(); }
    void resize(std::size_t buckets);

    std::vector<NamedEntry*> buckets_;
    std::size_t size_ = 0;
};

}  // namespace sluice::kv
