#include "worker/kv_pull.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "port/kv_pull.h"

namespace sluice::worker {

KvPull::KvPull(const Host& host, const port::KvSource& source, std::vector<kv::BlockKey> keys,
               std::chrono::nanoseconds time, Callbacks callbacks)
    : host_(host), keys_(std::move(keys)), callbacks_(std::move(callbacks)) {
    deadline_ = host_.loop.call_after(time, [this] { end("it takes too long"); });
    call_ = host_.client.start(
        {.method = "POST",
         .url = source.url + "/kv/pull",
         .headers = {{"Content-Type", "application/json"}},
         .body = port::to_json(
             port::KvPullRequest{.hold = source.hold, .keys = keys_, .tenant = host_.tenant}),
         .connect_time = host_.options.connect_time,
         .head_time = host_.options.stall_time,
         .stall_time = host_.options.stall_time,
         .repeatable = true},
        {.on_head = [this](int status, const net::HttpHeaders&) { status_ = status; },
         .on_data = [this](std::string_view data) { on_data(data); },
         .on_done =
             [this] {
                 end(status_ == 200 ? std::string() : fmt::format("the status is {}", status_));
             },
         .on_error = [this](const Error& error) { end(error.message()); }});
}

/// Of the value at the start of the buffer; 0 if that is not known yet.
Result<std::size_t> KvPull::whole_bytes() const {
    if (buffer_.size() < kv::kBlockPrefixBytes) return 0;
    const auto bytes = kv::block_value_bytes(buffer_);
    if (bytes && *bytes > host_.value_bytes)
        return std::unexpected(Error::corrupt("a block is larger than this engine's"));
    return bytes;
}

void KvPull::on_data(std::string_view data) {
    if (status_ != 200) return;
    const std::shared_ptr<bool> alive = alive_;
    while (!data.empty()) {
        const auto whole = whole_bytes();
        if (!whole) return end(whole.error().message());
        const std::size_t wanted = *whole == 0 ? kv::kBlockPrefixBytes : *whole;
        const std::string_view taken = data.substr(0, wanted - buffer_.size());
        buffer_ += taken;
        data.remove_prefix(taken.size());
        if (*whole == 0 || buffer_.size() < *whole) continue;
        take();
        if (!*alive) return;
        buffer_.clear();
    }
}

void KvPull::take() {
    const auto block = kv::decode_block(buffer_);
    if (!block) return callbacks_.on_corrupt(block.error());
    // What it doesn't have it leaves out.
    const auto from = keys_.begin() + static_cast<std::ptrdiff_t>(next_);
    const auto found = std::find(from, keys_.end(), block->header.key);
    if (found == keys_.end())
        return callbacks_.on_corrupt(Error::corrupt("nobody asked for this block"));
    const auto index = static_cast<std::size_t>(found - keys_.begin());
    next_ = index + 1;
    callbacks_.on_value(index, *block, buffer_);
}

void KvPull::end(std::string why) {
    deadline_.cancel();
    const auto on_end = std::exchange(callbacks_.on_end, nullptr);
    // Not from inside the call itself, which may not end itself.
    if (on_end) on_end(std::move(why));
}

}  // namespace sluice::worker
