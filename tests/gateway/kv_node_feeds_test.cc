#include "gateway/kv_node_feeds.h"

#include <gtest/gtest.h>

#include "base/metrics.h"
#include "tests/gateway/fake_kv_events.h"

namespace sluice::gateway {
namespace {

TEST(KvNodeFeedsTest, WhatANodeHoldsIsKnownWhileItIsAMember) {
    net::EventLoop loop;
    net::HttpClient client(loop);
    metrics::Registry metrics;
    RoutingProbe probe(metrics);
    routing::Registry registry(4);
    FakeKvEvents events;
    const auto server = *net::HttpServer::listen(
        loop, {},
        [&](const std::shared_ptr<net::HttpExchange>& exchange) { events.answer(exchange); });
    events.push({.type = port::KvEventType::kStored, .keys = {sha256("a"), sha256("b")}});
    const std::string http = "http://127.0.0.1:" + std::to_string(server->port());
    auto members = *KvMembers::open(
        {}, {{.url = "redis://127.0.0.1:1", .http = http}, {.url = "redis://127.0.0.1:2"}});
    KvNodeFeeds feeds(loop, client, registry, probe, members);
    feeds.start();
    const auto run_until_held = [&](std::uint64_t count) {
        for (int turns = 0; registry.index().held_by(0) != count; ++turns) {
            ASSERT_LT(turns, 30'000) << "what was waited for did not happen";
            loop.run_for(std::chrono::milliseconds(1));
        }
    };
    run_until_held(2);
    ASSERT_TRUE(members.remove("redis://127.0.0.1:1"));
    run_until_held(0);
    // And it may come back.
    ASSERT_TRUE(members.add({.url = "redis://127.0.0.1:1", .http = http}));
    run_until_held(2);
}

}  // namespace
}  // namespace sluice::gateway
