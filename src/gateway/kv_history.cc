#include "gateway/kv_history.h"

#include <algorithm>
#include <utility>

#include "gateway/generation.h"

namespace sluice::gateway {

void KvHistory::on_done(const Generation& generation, const RequestReport& report) {
    if (report.role != RequestRole::kAnswer) return;
    const auto keys = generation.block_keys();
    if (keys.empty()) return;
    remember({.rid = report.rid,
              .request_id = report.request_id,
              .tenant = report.tenant,
              .keys = {keys.begin(), keys.end()}});
}

void KvHistory::remember(Entry entry) {
    if (entry.keys.size() > blocks_max_) return;
    blocks_ += entry.keys.size();
    entries_.push_back(std::move(entry));
    while (blocks_ > blocks_max_) {
        blocks_ -= entries_.front().keys.size();
        entries_.pop_front();
    }
}

const KvHistory::Entry* KvHistory::find(std::string_view id) const {
    const auto found = std::find_if(entries_.rbegin(), entries_.rend(), [id](const Entry& entry) {
        return entry.rid == id || entry.request_id == id;
    });
    return found == entries_.rend() ? nullptr : &*found;
}

}  // namespace sluice::gateway
