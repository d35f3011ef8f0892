#include "kv/ssd_life_keeper.h"

namespace sluice::kv {

Result<void> SsdLifeKeeper::flush() {
    std::vector<SsdIndex::DirtyLives> dirty;
    {
        const std::lock_guard lock(state_.mutex);
        dirty = state_.index.take_dirty();
    }
    Result<void> result;
    for (const auto& segment : dirty) {
        auto written = write_lives(directory_.lives_path(segment.number), segment.nonce,
                                   segment.lives, faults_);
        if (written) continue;
        put_back(segment);
        result = written;
    }
    return result;
}

void SsdLifeKeeper::put_back(const SsdIndex::DirtyLives& lives) {
    const std::lock_guard lock(state_.mutex);
    for (const SsdLife& life : lives.lives)
        if (const auto place = state_.index.at(lives.number, life.slot))
            state_.index.set_expiry(*place, place->entry().expires_ms);
}

Result<void> SsdLifeKeeper::sync() {
    if (auto flushed = flush(); !flushed) return flushed;
    std::vector<std::uint64_t> unsynced;
    {
        const std::lock_guard lock(state_.mutex);
        unsynced = state_.index.take_unsynced_deaths();
    }
    if (unsynced.empty()) return {};
    // Of files that are new.
    const Result<void> names = directory_.sync();
    Result<void> result;
    for (const std::uint64_t number : unsynced) {
        auto synced = names ? sync_lives(directory_.lives_path(number), faults_) : names;
        if (synced) continue;
        const std::lock_guard lock(state_.mutex);
        if (auto* segment = state_.index.segment(number)) segment->deaths_unsynced = true;
        result = synced;
    }
    return result;
}

}  // namespace sluice::kv
