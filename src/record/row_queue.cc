#include "record/row_queue.h"

#include <utility>

namespace sluice::record {

std::uint64_t RowQueue::draw_below(std::uint64_t bound) {
    // xorshift64*: good enough to draw a sample with, and the same on every run.
    random_ ^= random_ >> 12U;
    random_ ^= random_ << 25U;
    random_ ^= random_ >> 27U;
    return (random_ * 0x2545F4914F6CDD1DULL >> 11U) % bound;
}

bool RowQueue::push(RequestRow row) {
    if (rows_.size() >= capacity_) {
        const auto [carrier, fresh] = carriers_.try_emplace(
            {row.pool, row.role, row.bucket(), row.kind, row.outcome}, rows_.size());
        if (!fresh) {
            RequestRow& kept = rows_[carrier->second];
            const std::uint64_t weight = kept.weight + row.weight;
            if (draw_below(weight) < row.weight) kept = std::move(row);
            kept.weight = weight;
            return false;
        }
    }
    rows_.push_back(std::move(row));
    return true;
}

std::vector<RequestRow> RowQueue::take() {
    carriers_.clear();
    return std::exchange(rows_, {});
}

}  // namespace sluice::record
