#include "kvnode/kv_event_feed.h"

#include <algorithm>
#include <utility>

namespace sluice::kvnode {
namespace {

using std::chrono::milliseconds;

/// Events of one step come together.
constexpr milliseconds kGather{5};
constexpr milliseconds kPatienceMost{30'000};

void respond(net::HttpExchange& exchange, const port::KvEventPage& page) {
    exchange.respond(net::HttpResponse::json(200, port::to_json(page)));
}

}  // namespace

KvEventFeed::KvEventFeed(net::EventLoop& loop, Source source, KvEventLog& log,
                         std::size_t page_keys)
    : loop_(loop), source_(std::move(source)), log_(log), page_keys_(page_keys) {}

void KvEventFeed::answer(const port::KvEventQuery& query,
                         std::shared_ptr<net::HttpExchange> exchange) {
    if (query.epoch != log_.epoch() || !log_.reaches(query.from))
        return answer_with_snapshot(std::move(exchange));
    if (query.page) {
        // Another snapshot has taken its place: from the start.
        if (!snapshot_ || snapshot_->next != query.from)
            return answer_with_snapshot(std::move(exchange));
        return respond(*exchange, page_of_snapshot(*query.page));
    }
    if (query.from < log_.next() || query.wait_ms == 0)
        return respond(*exchange, log_.since(query.from, page_keys_));
    wait(std::move(exchange), query.from, milliseconds(query.wait_ms));
}

void KvEventFeed::answer_with_snapshot(std::shared_ptr<net::HttpExchange> exchange) {
    const auto send = [this](net::HttpExchange& to) {
        port::KvEventPage page = page_of_snapshot(0);
        page.reset = true;
        respond(to, page);
    };
    // Young enough that its reader will not fall behind at once.
    if (snapshot_ && log_.reaches(snapshot_->next) &&
        log_.next() - snapshot_->next < log_.room(snapshot_->next))
        return send(*exchange);
    // The exchange belongs to the loop: another thread must not be the one that lets go of it.
    source_([this, send, exchange = std::move(exchange), alive = std::weak_ptr(alive_),
             loop = &loop_](Snapshot made) mutable {
        auto snapshot = std::make_shared<const Snapshot>(std::move(made));
        loop->post([this, send, exchange = std::move(exchange), alive, snapshot] {
            if (alive.expired()) return;
            snapshot_ = snapshot;
            send(*exchange);
        });
    });
}

port::KvEventPage KvEventFeed::page_of_snapshot(std::uint64_t start) const {
    port::KvEventPage page{.epoch = log_.epoch(), .next = snapshot_->next};
    const std::size_t size = snapshot_->blocks.size();
    const std::size_t first = std::min<std::uint64_t>(start, size);
    const std::size_t end = std::min(size, first + page_keys_);
    for (std::size_t i = first; i < end; ++i) append_stored(page.events, snapshot_->blocks[i]);
    if (end < size) page.page = end;
    return page;
}

void KvEventFeed::wait(std::shared_ptr<net::HttpExchange> exchange, std::uint64_t from,
                       milliseconds patience) {
    const auto place = waiters_.insert(
        waiters_.end(), {.exchange = std::move(exchange), .from = from, .patience = {}});
    place->patience = loop_.call_after(std::min(patience, kPatienceMost), [this, place] {
        const Waiter late = std::move(*place);
        waiters_.erase(place);
        answer({.epoch = log_.epoch(), .from = late.from}, late.exchange);
    });
    const net::HttpExchange* const gone = place->exchange.get();
    place->exchange->on_client_gone([this, gone, alive = std::weak_ptr(alive_)] {
        if (alive.expired()) return;
        std::erase_if(waiters_, [gone](const Waiter& each) { return each.exchange.get() == gone; });
    });
    listen();
}

void KvEventFeed::listen() {
    if (std::exchange(listening_, true)) return;
    const auto news = [this, alive = std::weak_ptr(alive_), loop = &loop_] {
        loop->post([this, alive] {
            if (alive.expired()) return;
            gather_ = loop_.call_after(kGather, [this] { answer_all(); });
        });
    };
    const std::uint64_t seen = waiters_.back().from;
    log_.on_next(news);
    if (log_.next() > seen) news();  // It came before anybody listened.
}

void KvEventFeed::answer_all() {
    listening_ = false;
    std::list<Waiter> waiters = std::exchange(waiters_, {});
    for (Waiter& waiter : waiters) {
        waiter.patience.cancel();
        answer({.epoch = log_.epoch(), .from = waiter.from}, std::move(waiter.exchange));
    }
}

}  // namespace sluice::kvnode
