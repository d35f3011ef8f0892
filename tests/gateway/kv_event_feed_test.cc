#include "gateway/kv_event_feed.h"

#include <gtest/gtest.h>

#include "base/metrics.h"
#include "gateway/block_chain.h"
#include "tests/gateway/fake_kv_events.h"

namespace sluice::gateway {
namespace {

using std::chrono::milliseconds;

Sha256Digest key(std::uint8_t name) {
    Sha256Digest digest{};
    digest.fill(name);
    return digest;
}

port::KvEvent stored(std::vector<Sha256Digest> keys) {
    return {.type = port::KvEventType::kStored, .keys = std::move(keys)};
}
port::KvEvent removed(std::vector<Sha256Digest> keys) {
    return {.type = port::KvEventType::kRemoved, .keys = std::move(keys)};
}

class KvEventFeedTest : public testing::Test {
protected:
    KvEventFeedTest() {
        server = *net::HttpServer::listen(
            loop, {}, [this](const std::shared_ptr<net::HttpExchange>& exchange) {
                if (!knows_events) return exchange->respond(net::HttpResponse::json(404, "{}"));
                events.answer(exchange);
            });
    }
    void follow(const KvEventFeedOptions& options = {.pause = milliseconds(1)}) {
        feed.emplace(loop, client, registry, probe,
                     "http://127.0.0.1:" + std::to_string(server->port()), worker, options);
        feed->start();
    }
    [[nodiscard]] std::uint64_t held() const { return registry.index().held_by(worker); }
    void run_until(const std::function<bool()>& condition) {
        for (int turns = 0; !condition(); ++turns) {
            ASSERT_LT(turns, 30'000) << "what was waited for did not happen";
            loop.run_for(milliseconds(1));
        }
    }
    [[nodiscard]] bool shows(const std::string& line) {
        return metrics.text().find(line) != std::string::npos;
    }

    net::EventLoop loop;
    net::HttpClient client{loop};
    metrics::Registry metrics;
    RoutingProbe probe{metrics};
    routing::Registry registry{4};
    routing::WorkerIndex worker = *registry.add({});
    FakeKvEvents events;
    bool knows_events = true;
    std::unique_ptr<net::HttpServer> server;
    std::optional<KvEventFeed> feed;
};

TEST_F(KvEventFeedTest, WhatIsStoredAndRemovedIsKnownAsItHappens) {
    events.push(stored({key(1), key(2)}));
    follow();
    run_until([this] { return held() == 2; });
    EXPECT_TRUE(registry.events(worker));
    events.push(stored({key(3)}));
    run_until([this] { return held() == 3; });
    events.push(removed({key(1), key(9)}));
    run_until([this] { return held() == 2; });
    events.push({.type = port::KvEventType::kCleared});
    run_until([this] { return held() == 0; });
    EXPECT_EQ(events.resets, 1U);
    EXPECT_TRUE(shows("sluice_kv_events_total{type=\"stored\"} 3"));
    EXPECT_TRUE(shows("sluice_kv_resyncs_total{reason=\"start\"} 1"));
}

TEST_F(KvEventFeedTest, ARestartForgetsWhatTheOtherProcessHeld) {
    events.push(stored({key(1), key(2)}));
    follow();
    run_until([this] { return held() == 2; });
    events.restart("bb");
    events.push(stored({key(7)}));
    run_until([this] { return held() == 1; });
    const routing::BlockHash hash = block_hash(key(7));
    routing::PrefixIndex::Matches found;
    registry.index().match({&hash, 1}, found);
    EXPECT_EQ(found.blocks(worker), 1U);
}

// Elsewhere a deletion that got lost left ghosts for hours.
TEST_F(KvEventFeedTest, ALostRemovalHealsWhenAllIsReadAgain) {
    events.push(stored({key(1), key(2), key(3)}));
    // All is read again after each answer: what comes between two of them must not matter.
    follow({.wait = milliseconds(20), .pause = milliseconds(1), .refresh = milliseconds(0)});
    run_until([this] { return held() == 3; });
    events.log = {stored({key(1)})};  // And nobody is told.
    events.push(stored({key(4)}));
    run_until([this] { return held() == 2; });
}

TEST_F(KvEventFeedTest, AnAnswerThatMakesNoSenseIsFollowedByAllOfIt) {
    events.push(stored({key(1)}));
    events.broken = R"({"epoch":"aa","next":)";
    follow();
    run_until([this] { return held() == 1; });
    // Numbers that go back without a word.
    events.broken = R"({"epoch":"aa","next":0,"reset":false,"events":[]})";
    events.push(stored({key(2)}));
    run_until([this] { return events.resets == 2 && held() == 2; });
    EXPECT_TRUE(shows("sluice_kv_resyncs_total{reason=\"gap\"} 2"));
}

TEST_F(KvEventFeedTest, AWorkerWithoutEventsIsKnownAsOne) {
    knows_events = false;
    registry.set_events(worker, true);
    follow({.rarely = milliseconds(1)});
    run_until([this] { return !registry.events(worker); });
    knows_events = true;
    events.push(stored({key(1)}));
    run_until([this] { return registry.events(worker) && held() == 1; });
}

TEST_F(KvEventFeedTest, AFeedThatEndsWhileItWaitsLeavesNothing) {
    follow();
    run_until([this] { return events.questions == 2; });
    feed.reset();
    events.push(stored({key(1)}));
    for (int i = 0; i < 20; ++i) loop.run_for(milliseconds(1));
    EXPECT_EQ(held(), 0U);
}

}  // namespace
}  // namespace sluice::gateway
