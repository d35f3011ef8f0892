#include "kv/ssd_queue.h"

#include <utility>

namespace sluice::kv {
namespace {

/// What an entry of the queue takes beside its name and value.
constexpr std::uint64_t kOverheadBytes = 256;

}  // namespace

std::uint64_t SsdQueue::cost(const SsdPut& put) {
    return kOverheadBytes + put.name.size() + put.value.bytes.size();
}

bool SsdQueue::push(SsdPut put) {
    if (bytes_ + cost(put) > bytes_max_) return false;
    take_back(put.name);
    bytes_ += cost(put);
    ++pushed_;
    const auto& entry = waiting_.emplace_back(std::make_shared<SsdPut>(std::move(put)));
    by_name_.emplace(entry->name, entry);
    return true;
}

std::shared_ptr<SsdPut> SsdQueue::pop() {
    if (waiting_.empty()) return nullptr;
    auto put = std::move(waiting_.front());
    waiting_.pop_front();
    return put;
}

void SsdQueue::finish(const std::shared_ptr<SsdPut>& put) {
    bytes_ -= cost(*put);
    ++finished_;
    const auto found = by_name_.find(put->name);
    if (found != by_name_.end() && found->second == put) by_name_.erase(found);
}

std::shared_ptr<SsdPut> SsdQueue::find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
}

bool SsdQueue::take_back(std::string_view name) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return false;
    found->second->taken_back = true;
    by_name_.erase(found);
    return true;
}

}  // namespace sluice::kv
