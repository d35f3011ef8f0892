#include "dispatch/resume_pacer.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace sluice::dispatch {

ResumePacer::~ResumePacer() {
    SLUICE_ASSERT(std::ranges::all_of(tokens_, [](std::uint64_t each) { return each == 0; }));
}

std::uint64_t& ResumePacer::of(routing::PoolIndex pool) {
    if (pool >= tokens_.size()) tokens_.resize(pool + 1);
    return tokens_[pool];
}

std::uint64_t ResumePacer::tokens(routing::PoolIndex pool) const {
    return pool < tokens_.size() ? tokens_[pool] : 0;
}

std::optional<ResumePacer::Turn> ResumePacer::admit(routing::PoolIndex pool, std::uint64_t tokens,
                                                    std::uint32_t workers) {
    const std::uint64_t under_way = of(pool);
    if (under_way > 0 && under_way + tokens > tokens_per_worker_ * std::max(1U, workers))
        return std::nullopt;
    return Turn(*this, pool, tokens);
}

ResumePacer::Turn::Turn(ResumePacer& pacer, routing::PoolIndex pool, std::uint64_t tokens)
    : pacer_(&pacer), pool_(pool), tokens_(tokens) {
    pacer_->of(pool_) += tokens_;
}

ResumePacer::Turn::Turn(Turn&& other) noexcept
    : pacer_(std::exchange(other.pacer_, nullptr)), pool_(other.pool_), tokens_(other.tokens_) {}

ResumePacer::Turn& ResumePacer::Turn::operator=(Turn&& other) noexcept {
    if (this != &other) {
        end();
        pacer_ = std::exchange(other.pacer_, nullptr);
        pool_ = other.pool_;
        tokens_ = other.tokens_;
    }
    return *this;
}

void ResumePacer::Turn::end() noexcept {
    if (pacer_ == nullptr) return;
    pacer_->tokens_[pool_] -= tokens_;
    pacer_ = nullptr;
}

}  // namespace sluice::dispatch
