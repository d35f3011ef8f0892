#include "worker/kv_holds.h"

#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/hash.h"
#include "base/limits.h"
#include "base/secure_random.h"

namespace sluice::worker {

KvHolds::KvHolds(net::EventLoop& loop, std::chrono::milliseconds time,
                 std::function<void(End)> on_end)
    : loop_(loop), time_(time), on_end_(std::move(on_end)) {
    std::array<std::uint8_t, sizeof(process_)> bytes{};
    fill_secure_random(bytes);
    std::memcpy(&process_, bytes.data(), bytes.size());
}

std::string KvHolds::add(Held held) {
    std::string name;
    append_hex(name, process_);
    append_hex(name, ++count_ * limits::kDpRanks + held.rank);
    if (holds_.size() >= limits::kKvHolds) return name;
    holds_.emplace(
        name, Hold{.held = std::move(held),
                   .timer = loop_.call_after(time_, [this, name] { end(name, End::kTimedOut); })});
    return name;
}

std::optional<KvHolds::Held> KvHolds::find(const std::string& name) const {
    const auto found = holds_.find(name);
    return found == holds_.end() ? std::nullopt : std::optional(found->second.held);
}

std::size_t KvHolds::rank_of(const std::string& name) const {
    std::string ours;
    append_hex(ours, process_);
    std::uint64_t number = 0;
    const char* const end = name.data() + name.size();
    if (!name.starts_with(ours)) return 0;
    const auto [stop, error] = std::from_chars(name.data() + ours.size(), end, number, 16);
    return error == std::errc() && stop == end ? number % limits::kDpRanks : 0;
}

void KvHolds::release(const std::string& name) { end(name, End::kReleased); }

void KvHolds::clear() {
    while (!holds_.empty()) end(std::string(holds_.begin()->first), End::kStopped);
}

void KvHolds::end(const std::string& name, End how) {
    const auto found = holds_.find(name);
    if (found == holds_.end()) return;
    const Hold ended = std::move(found->second);  // Its timer may be what calls.
    holds_.erase(found);
    on_end_(how);
}

}  // namespace sluice::worker
