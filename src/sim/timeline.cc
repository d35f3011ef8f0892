#include "sim/timeline.h"

namespace sluice::sim {

Timeline::Stretch& Timeline::at(Time time) {
    auto index = static_cast<std::size_t>(time.time_since_epoch() / width_);
    while (index >= kStretches) {
        join_pairs();
        index /= 2;
    }
    if (index >= stretches_.size()) stretches_.resize(index + 1);
    return stretches_[index];
}

void Timeline::join_pairs() {
    width_ *= 2;
    for (std::size_t i = 0; i < stretches_.size(); ++i) {
        const Stretch from = stretches_[i];
        if (i % 2 == 0) {
            stretches_[i / 2] = from;
            continue;
        }
        Stretch& into = stretches_[i / 2];
        into.tokens += from.tokens;
        into.arrived += from.arrived;
        into.completed += from.completed;
        into.failed += from.failed;
    }
    stretches_.resize((stretches_.size() + 1) / 2);
}

}  // namespace sluice::sim
