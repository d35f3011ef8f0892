#include "gateway/resume_queue.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "gateway/generation.h"

namespace sluice::gateway {

std::optional<ResumeQueue::Turn> ResumeQueue::admit(routing::PoolIndex pool, std::uint64_t tokens) {
    return pacer_.admit(pool, tokens,
                        pools_.registry().ready_in(pool, std::chrono::steady_clock::now()));
}

std::optional<ResumeQueue::Turn> ResumeQueue::ask(Generation& generation, Pool& pool,
                                                  std::uint64_t tokens) {
    if (const auto granted = granted_.extract(&generation)) return std::move(granted.mapped());
    const bool others_first = std::ranges::any_of(
        waiting_, [&](const Waiting& each) { return each.pool == pool.index(); });
    auto turn = others_first ? std::nullopt : admit(pool.index(), tokens);
    if (!turn) waiting_.push_back({generation.weak_from_this(), pool.index(), tokens});
    probe_.resumes_waiting(waiting_.size());
    return turn;
}

void ResumeQueue::end(Turn& turn) {
    if (!turn.active()) return;
    turn.end();
    call_next();
}

void ResumeQueue::forget(const Generation& generation) {
    auto granted = granted_.extract(&generation);
    if (granted) end(granted.mapped());
    std::erase_if(waiting_, [&](const Waiting& each) {
        const auto waiting = each.generation.lock();
        return !waiting || waiting.get() == &generation;
    });
    probe_.resumes_waiting(waiting_.size());
}

void ResumeQueue::call_next() {
    std::set<routing::PoolIndex> full;
    for (auto each = waiting_.begin(); each != waiting_.end();) {
        const auto generation = each->generation.lock();
        auto turn = full.contains(each->pool) ? std::nullopt : admit(each->pool, each->tokens);
        if (generation && !turn) {
            full.insert(each->pool);
            ++each;
            continue;
        }
        each = waiting_.erase(each);
        if (!generation) continue;
        granted_[generation.get()] = std::move(*turn);
        // Later: the request whose turn ended is still at work.
        loop_.post([generation] { generation->worker_available(); });
    }
    probe_.resumes_waiting(waiting_.size());
}

}  // namespace sluice::gateway
