#include "worker/kv_known.h"

#include <cstring>
#include <utility>

namespace sluice::worker {

std::size_t KvKnown::Hash::operator()(const kv::BlockKey& key) const {
    // Any eight bytes of a SHA-256 are as good as a hash of it.
    std::size_t hash = 0;
    std::memcpy(&hash, key.data(), sizeof(hash));
    return hash;
}

void KvKnown::age(Time now) {
    if (young_.size() < kNames && now - since_ < kTime) return;
    old_ = now - since_ < 2 * kTime ? std::exchange(young_, {}) : Names();
    young_.clear();
    since_ = now;
}

void KvKnown::add(const kv::BlockKey& key, Time now) {
    age(now);
    young_.insert(key);
}

bool KvKnown::contains(const kv::BlockKey& key, Time now) {
    age(now);
    return young_.contains(key) || old_.contains(key);
}

void KvKnown::clear() {
    young_.clear();
    old_.clear();
}

}  // namespace sluice::worker
