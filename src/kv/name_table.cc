#include "kv/name_table.h"

#include <span>
#include <utility>

#include "base/assert.h"
#include "base/hash.h"

namespace sluice::kv {
namespace {

std::uint64_t reversed(std::uint64_t bits) {
    std::uint64_t turned = 0;
    for (int i = 0; i < 64; ++i) turned |= ((bits >> i) & 1U) << (63 - i);
    return turned;
}

/// Counts from the highest bit below `buckets` down, as if the carry went the other way: buckets that
/// were split or joined since are those that were met, or those that were not.
std::uint64_t next_cursor(std::uint64_t cursor, std::size_t buckets) {
    const std::uint64_t above = ~static_cast<std::uint64_t>(buckets - 1);
    return reversed(reversed(cursor | above) + 1);
}

}  // namespace

std::uint64_t NameTable::hash_of(std::string_view name) {
    return xxh3_128(std::as_bytes(std::span(name.data(), name.size()))).low;
}

NamedEntry* NameTable::find(std::string_view name, std::uint64_t hash) const {
    NamedEntry* entry = buckets_[bucket(hash)];
    while (entry != nullptr && (entry->hash != hash || entry->name != name)) entry = entry->next;
    return entry;
}

void NameTable::insert(NamedEntry& entry) {
    if (full()) resize(2 * buckets_.size());
    NamedEntry*& head = buckets_[bucket(entry.hash)];
    entry.next = std::exchange(head, &entry);
    ++size_;
}

void NameTable::erase(NamedEntry& entry) {
    NamedEntry** link = &buckets_[bucket(entry.hash)];
    while (*link != &entry) {
        SLUICE_ASSERT(*link != nullptr);
        link = &(*link)->next;
    }
    *link = std::exchange(entry.next, nullptr);
    --size_;
    if (size_ < buckets_.size() / 16 && buckets_.size() > kBucketsLeast)
        resize(buckets_.size() / 2);
}

void NameTable::resize(std::size_t buckets) {
    const auto old = std::exchange(buckets_, std::vector<NamedEntry*>(buckets));
    for (NamedEntry* entry : old) {
        while (entry != nullptr) {
            NamedEntry*& head = buckets_[bucket(entry->hash)];
            NamedEntry* const next = std::exchange(entry->next, head);
            head = std::exchange(entry, next);
        }
    }
}

std::uint64_t NameTable::scan(std::uint64_t cursor, std::size_t count,
                              FunctionRef<void(NamedEntry&)> visit) const {
    std::size_t met = 0;
    for (std::size_t buckets = 0; met < count && buckets < count; ++buckets) {
        for (NamedEntry* entry = buckets_[bucket(cursor)]; entry != nullptr; entry = entry->next) {
            visit(*entry);
            ++met;
        }
        cursor = next_cursor(cursor, buckets_.size());
        if (cursor == 0) break;
    }
    return cursor;
}

}  // namespace sluice::kv
