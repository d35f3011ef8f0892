#include "adapters/hold_releaser.h"

#include <fmt/format.h>

#include "base/log.h"

namespace sluice::adapters {
namespace {

constexpr std::chrono::milliseconds kTime{2'000};

}  // namespace

void HoldReleaser::release(const port::KvSource& source) {
    if (calls_.size() >= kUnderWay) return;
    const std::uint64_t call = next_++;
    const auto over = [this, call, alive = std::weak_ptr(alive_)] {
        if (!alive.expired()) calls_.erase(call);
    };
    calls_[call] =
        client_.start({.method = "POST",
                       .url = source.url + "/kv/release",
                       .headers = {{"Content-Type", "application/json"}},
                       .body = fmt::format(R"({{"hold":"{}"}})", source.hold),
                       .connect_time = kTime,
                       .head_time = kTime,
                       .stall_time = kTime},
                      {.on_head = [](int, const net::HttpHeaders&) {},
                       .on_data = [](std::string_view) {},
                       .on_done = over,
                       .on_error =
                           [over, url = source.url](const Error& error) {
                               log::info("the worker at {} was not told to let go of blocks: {}",
                                         url, error.message());
                               over();
                           }});
}

}  // namespace sluice::adapters
