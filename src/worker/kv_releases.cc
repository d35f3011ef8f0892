#include "worker/kv_releases.h"

#include "base/limits.h"
#include "port/kv_pull.h"

namespace sluice::worker {
namespace {

constexpr std::chrono::milliseconds kPatience{2'000};

}  // namespace

void KvReleases::send(const std::string& url, const std::string& hold) {
    if (calls_.size() >= limits::kKvHolds) return;
    const std::uint64_t number = ++count_;
    const auto forget = [this, number] { calls_.erase(number); };
    calls_[number] =
        client_.start({.method = "POST",
                       .url = url + "/kv/release",
                       .headers = {{"Content-Type", "application/json"}},
                       .body = port::to_json(port::KvReleaseRequest{.hold = hold}),
                       .connect_time = kPatience,
                       .head_time = kPatience,
                       .stall_time = kPatience,
                       .repeatable = true},
                      {.on_done = forget, .on_error = [forget](const Error&) { forget(); }});
}

}  // namespace sluice::worker
