#include "kvnode/kv_event_log.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "base/hash.h"
#include "base/secure_random.h"

namespace sluice::kvnode {

void append_stored(std::vector<port::KvEvent>& events, const TieredBlock& stored) {
    const kv::NamedBlock& block = stored.block;
    const bool goes_on =
        !block.first && !events.empty() && events.back().type == port::KvEventType::kStored &&
        events.back().tier == stored.tier && events.back().keys.back() == block.parent;
    if (!goes_on) {
        events.push_back({.type = port::KvEventType::kStored, .tier = std::string(stored.tier)});
        if (!block.first) events.back().parent = block.parent;
    }
    events.back().keys.push_back(block.key);
}

KvEventLog::KvEventLog(std::size_t capacity) : ring_(capacity) {
    SLUICE_ASSERT(capacity > 0);
    std::array<std::uint8_t, 8> bytes{};
    fill_secure_random(bytes);
    epoch_ = to_hex(bytes);
}

void KvEventLog::stored(const TieredBlock& block) {
    SLUICE_ASSERT(!block.tier.empty());
    add({.block = block.block, .tier = block.tier});
}

void KvEventLog::removed(const kv::BlockKey& key) { add({.block = {.key = key}, .tier = {}}); }

void KvEventLog::add(const Record& record) {
    std::function<void()> work;
    {
        const std::lock_guard lock(mutex_);
        ring_[next_++ % ring_.size()] = record;
        work.swap(on_next_);
    }
    if (work) work();
}

std::uint64_t KvEventLog::next() const {
    const std::lock_guard lock(mutex_);
    return next_;
}

bool KvEventLog::reaches(std::uint64_t from) const {
    const std::lock_guard lock(mutex_);
    return from <= next_ && next_ - from <= ring_.size();
}

std::uint64_t KvEventLog::room(std::uint64_t from) const {
    const std::lock_guard lock(mutex_);
    return from + ring_.size() - std::min<std::uint64_t>(next_, from + ring_.size());
}

port::KvEventPage KvEventLog::since(std::uint64_t from, std::size_t most) const {
    const std::lock_guard lock(mutex_);
    SLUICE_ASSERT(from <= next_ && next_ - from <= ring_.size());
    port::KvEventPage page{.epoch = epoch_, .next = from};
    for (; page.next < next_ && page.next - from < most; ++page.next) {
        const Record& record = ring_[page.next % ring_.size()];
        if (!record.tier.empty()) {
            append_stored(page.events, {.block = record.block, .tier = record.tier});
            continue;
        }
        if (page.events.empty() || page.events.back().type != port::KvEventType::kRemoved)
            page.events.push_back({.type = port::KvEventType::kRemoved});
        page.events.back().keys.push_back(record.block.key);
    }
    return page;
}

void KvEventLog::on_next(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    on_next_ = std::move(work);
}

}  // namespace sluice::kvnode
