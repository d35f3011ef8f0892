#include "traffic/sample_window.h"

#include "base/limits.h"

namespace sluice::traffic {

void SampleWindow::add(const Attempt& attempt, Time now) {
    attempts_.push_back({now, attempt});
    if (attempts_.size() > limits::kGuardSamples) attempts_.pop_front();
    ++total_;
}

void SampleWindow::add_comparison(bool differs, Time now) {
    comparisons_.push_back({now, differs});
    if (comparisons_.size() > limits::kGuardSamples) comparisons_.pop_front();
    ++total_;
}

void SampleWindow::forget_before(Time time) {
    while (!attempts_.empty() && attempts_.front().at < time) attempts_.pop_front();
    while (!comparisons_.empty() && comparisons_.front().at < time) comparisons_.pop_front();
}

}  // namespace sluice::traffic
