#include "gateway/kv_event_feed.h"

#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "gateway/block_chain.h"

namespace sluice::gateway {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kConnectTime{2'000};
constexpr milliseconds kStallTime{5'000};
/// Keys are hexadecimal; around them is little.
constexpr std::size_t kPageBytes = limits::kPortBlockKeys * 128;

}  // namespace

KvEventFeed::KvEventFeed(net::EventLoop& loop, net::HttpClient& client, routing::Registry& registry,
                         RoutingProbe& probe, std::string url, routing::WorkerIndex worker,
                         const KvEventFeedOptions& options)
    : loop_(loop),
      client_(client),
      registry_(registry),
      probe_(probe),
      url_(std::move(url)),
      worker_(worker),
      options_(options) {}

KvEventFeed::~KvEventFeed() = default;

void KvEventFeed::start() {
    begin_anew("start");
    ask();
}

void KvEventFeed::begin_anew(std::string_view reason) {
    query_ = {.wait_ms = static_cast<std::uint32_t>(options_.wait.count()), .rank = options_.rank};
    refresh_at_ = steady_clock::now() + options_.refresh;
    probe_.resynced(reason);
}

void KvEventFeed::ask() {
    body_.clear();
    auto status = std::make_shared<int>(0);
    call_ =
        client_.start({.url = url_ + query_.target(),
                       .connect_time = kConnectTime,
                       .head_time = options_.wait + kStallTime,
                       .stall_time = kStallTime,
                       .repeatable = true},
                      {.on_head = [status](int code, const net::HttpHeaders&) { *status = code; },
                       .on_data =
                           [this](std::string_view data) {
                               body_.append(data.substr(0, kPageBytes - body_.size()));
                           },
                       .on_done = [this, status] { on_answer(*status); },
                       .on_error = [this](const Error&) { ask_after(options_.pause); }});
}

void KvEventFeed::ask_after(milliseconds pause) {
    // Not at once even without a pause: this may be one of the call's own events.
    next_ = loop_.call_after(pause, [this] { ask(); });
}

void KvEventFeed::on_answer(int status) {
    const bool unknown = status == 404 || status == 405 || status == 501;
    if (unknown) {
        registry_.set_events(worker_, false);
        return ask_after(options_.rarely);
    }
    if (status != 200) return ask_after(options_.pause);
    const auto page = port::parse_kv_event_page(body_);
    if (!page) return lost(page.error().to_string());
    // Numbers only go back where everything begins anew.
    const bool gap = !page->reset && (page->epoch != query_.epoch || page->next < query_.from);
    if (gap) return lost("its events have a gap");
    on_page(*page);
}

void KvEventFeed::lost(std::string_view reason) {
    log::warn("the cache of worker {} is read from the start: {}", url_, reason);
    begin_anew("gap");
    ask_after(options_.pause);
}

void KvEventFeed::on_page(const port::KvEventPage& page) {
    if (page.reset) registry_.index().cleared(worker_);
    for (const port::KvEvent& event : page.events) apply(event);
    registry_.set_events(worker_, true);
    query_ = query_.after(page);
    if (!page.page && steady_clock::now() >= refresh_at_) begin_anew("refresh");
    ask_after(milliseconds(0));
}

void KvEventFeed::apply(const port::KvEvent& event) {
    hashes_.clear();
    for (const Sha256Digest& key : event.keys) hashes_.push_back(block_hash(key));
    switch (event.type) {
        case port::KvEventType::kStored:
            registry_.index().stored(worker_, hashes_);
            return probe_.stored(hashes_.size());
        case port::KvEventType::kRemoved:
            registry_.index().removed(worker_, hashes_);
            return probe_.removed(hashes_.size());
        case port::KvEventType::kCleared:
            registry_.index().cleared(worker_);
            return probe_.cleared();
    }
}

}  // namespace sluice::gateway
