#include "adapters/hold_releaser.h"

#include "base/limits.h"
#include "base/log.h"
#include "port/kv_pull.h"

namespace sluice::adapters {
namespace {

constexpr std::chrono::milliseconds kTime{2'000};

}  // namespace

void HoldReleaser::release(const port::KvSource& source) {
    if (calls_.size() >= limits::kKvHolds) return;
    const std::uint64_t call = next_++;
    const auto over = [this, call] { calls_.erase(call); };
    const auto failed = [this, call, url = source.url](const Error& error) {
        log::info("the worker at {} was not told to let go of blocks: {}", url, error.message());
        calls_.erase(call);
    };
    calls_[call] = client_.start({.method = "POST",
                                  .url = source.url + "/kv/release",
                                  .headers = {{"Content-Type", "application/json"}},
                                  .body = to_json(port::KvReleaseRequest{.hold = source.hold}),
                                  .connect_time = kTime,
                                  .head_time = kTime,
                                  .stall_time = kTime,
                                  .repeatable = true},
                                 {.on_done = over, .on_error = failed});
}

}  // namespace sluice::adapters
