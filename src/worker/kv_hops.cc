#include "worker/kv_hops.h"

#include <algorithm>
#include <utility>

#include "engine/engine.h"

namespace sluice::worker {

kv::UsablePrefix usable_blocks(const kv::StoredParts& there, std::size_t prompt_tokens) {
    const kv::Component rows{
        .name = "rows", .kind = kv::ComponentKind::kRows, .quantum = engine::Engine::kBlockTokens};
    return kv::usable_prefix({&rows, 1}, {&there, 1}, prompt_tokens);
}

void KvHops::add(KvHop hop) {
    hop.has.resize(blocks_);
    all_.push_back(std::move(hop));
}

KvHop* KvHops::next() { return next_ == all_.size() ? nullptr : &all_[next_++]; }

const KvHop* KvHops::first_with(std::size_t block) const {
    const auto hop = std::ranges::find_if(
        all_, [block](const KvHop& each) { return each.has[block].has_value(); });
    return hop == all_.end() ? nullptr : &*hop;
}

void KvHops::forget(std::span<const std::size_t> blocks) {
    for (KvHop& hop : all_)
        for (const std::size_t block : blocks) hop.has[block].reset();
}

std::chrono::nanoseconds KvHops::load_time(std::span<const std::size_t> blocks,
                                           std::size_t block_bytes) const {
    std::chrono::nanoseconds time{};
    for (const KvHop& hop : all_) {
        const auto count = std::ranges::count_if(
            blocks, [&](std::size_t block) { return first_with(block) == &hop; });
        if (count > 0) time += hop.speed->predict(static_cast<std::size_t>(count) * block_bytes);
    }
    return time;
}

bool KvHops::speed_is_stale(std::chrono::steady_clock::time_point now) const {
    return std::ranges::any_of(all_, [now](const KvHop& hop) {
        return !hop.is_handover() && hop.speed->stale(now) &&
               std::ranges::any_of(hop.has, [](const auto& has) { return has.has_value(); });
    });
}

}  // namespace sluice::worker
