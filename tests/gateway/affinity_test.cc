// Requests go where their prefixes are, over real sockets.

#include <array>
#include <numeric>

#include "gateway/block_chain.h"
#include "tests/gateway/gateway_fixture.h"

namespace sluice::gateway {
namespace {

const std::string kLong = [] {
    std::string text;
    for (int i = 0; i < 60; ++i)
        text += "Once upon a time there was a fox number " + std::to_string(i) + ". ";
    return text;
}();

/// Two workers that keep blocks of 16 tokens and say so; each tells of what it was sent.
class AffinityTest : public GatewayTest {
protected:
    void open(std::uint32_t ranks = 1) {
        worker = make_worker(ranks);
        second = make_worker(ranks);
        GatewayOptions options;
        start_gateway(std::move(options));
        const discovery::WorkerEntry other{.pool = "stable", .url = second->url()};
        auto& pool = dynamic_cast<NativePool&>(*gateway->pools().find("stable"));
        ASSERT_TRUE(pool.add(other).has_value());
        run_until([&] {
            return gateway->pools().registry().ready_in(0, std::chrono::steady_clock::now()) ==
                   2 * ranks;
        });
        run_until([&] {
            return worker->kv_events.questions > ranks && second->kv_events.questions > ranks;
        });
    }

    std::unique_ptr<FakeWorker> make_worker(std::uint32_t ranks) {
        auto made = std::make_unique<FakeWorker>(loop, std::vector{says("Paris.")});
        made->info.kv_components = {{.name = "mla"}};
        made->info.block_tokens = 16;
        made->info.dp_ranks = ranks;
        made->info.context_length = 100'000;
        return made;
    }

    /// The worker tells of all blocks of the last prompt it was sent.
    static void tell(FakeWorker& teller) {
        const port::GenerateRequest& request = teller.requests.back();
        kv::BlockKeyRoot root = *block_root(teller.info);
        root.salt = request.kv.salt;
        port::KvEvent event;
        kv::BlockKey key = kv::root_key(root);
        for (std::size_t at = 0; at + 16 <= request.input_ids.size(); at += 16) {
            key = kv::child_key(key, std::span(request.input_ids).subspan(at, 16));
            event.keys.push_back(key);
        }
        teller.kv_events.push(std::move(event));
    }

    static std::string chat_of(const std::string& conversation) {
        return json::serialize(json::value{
            {"model", "krill"}, {"messages", {{{"role", "user"}, {"content", conversation}}}}});
    }
    Reply turn_of(const std::string& conversation) {
        return send("POST", "/v1/chat/completions", chat_of(conversation));
    }

    /// Requests with one long prefix, sent all together to workers that never answer.
    struct Unanswered {
        Unanswered(AffinityTest& test, std::size_t count) : replies(count) {
            const auto hang = [](const port::GenerateRequest&, net::HttpExchange& exchange) {
                begin(exchange);
            };
            test.worker->set_scripts({hang});
            test.second->set_scripts({hang});
            for (std::size_t i = 0; i < count; ++i)
                calls.push_back(test.begin_send(replies[i], "POST", "/v1/chat/completions",
                                                chat_of(kLong + std::to_string(i))));
        }
        std::vector<Reply> replies;
        std::vector<std::unique_ptr<net::HttpCall>> calls;
    };
    [[nodiscard]] FakeWorker& busier() {
        return worker->requests.size() > second->requests.size() ? *worker : *second;
    }

    std::unique_ptr<FakeWorker> second;
};

TEST_F(AffinityTest, TheSecondTurnGoesWhereItsPrefixIs) {
    open();
    EXPECT_EQ(turn_of(kLong).status, 200);
    FakeWorker& first = busier();
    tell(first);
    const auto index = [this]() -> routing::PrefixIndex& {
        return gateway->pools().registry().index();
    };
    run_until([&] { return index().blocks() > 0; });
    for (int turn = 0; turn < 5; ++turn)
        EXPECT_EQ(turn_of(kLong + " And then " + std::to_string(turn)).status, 200);
    EXPECT_EQ(first.requests.size(), 6U);
    EXPECT_NE(metrics().find("sluice_workers_without_events{pool=\"stable\"} 0"),
              std::string::npos);
    EXPECT_EQ(status().at("pools").at(0).at("workers").at(0).at("kv_events"), true);
}

TEST_F(AffinityTest, WhatOnlyOneWorkerToldOfAttractsAndWhatItDroppedDoesNot) {
    open();
    EXPECT_EQ(turn_of(kLong).status, 200);
    FakeWorker& first = busier();
    FakeWorker& other = &first == worker.get() ? *second : *worker;
    tell(first);
    routing::Registry& registry = gateway->pools().registry();
    run_until([&] { return registry.index().blocks() > 0; });
    first.kv_events.push({.type = port::KvEventType::kCleared});
    run_until([&] {
        const auto all = first.kv_events.questions;
        return all > 3 && registry.index().held_by(0) + registry.index().held_by(1) == 0;
    });
    // Equals take turns again.
    EXPECT_EQ(turn_of(kLong + " And then").status, 200);
    EXPECT_EQ(other.requests.size(), 1U);
}

TEST_F(AffinityTest, APrefixThatAllAskForSpreads) {
    open();
    const Unanswered unanswered(*this, 40);
    run_until([&] { return worker->requests.size() + second->requests.size() == 40; });
    EXPECT_GE(worker->requests.size(), 14U);
    EXPECT_GE(second->requests.size(), 14U);
}

TEST_F(AffinityTest, WhoHasThePrefixIsNamedToTheOneThatGetsTheRequest) {
    open();
    EXPECT_EQ(turn_of(kLong).status, 200);
    FakeWorker& holder = busier();
    FakeWorker& other = &holder == worker.get() ? *second : *worker;
    tell(holder);
    run_until([&] { return gateway->pools().registry().index().blocks() > 0; });
    const Unanswered unanswered(*this, 8);
    run_until([&] { return holder.requests.size() + other.requests.size() == 9; });
    for (const port::GenerateRequest& each : holder.requests) EXPECT_TRUE(each.kv.sources.empty());
    ASSERT_FALSE(other.requests.empty());
    ASSERT_EQ(other.requests[0].kv.sources.size(), 1U);
    const port::KvSource& source = other.requests[0].kv.sources[0];
    EXPECT_EQ(source.url, holder.url());
    EXPECT_EQ(source.hold, "");
    EXPECT_EQ(source.tail_tokens, 0U);
    // All full blocks that both prompts have in common.
    const auto& first = holder.requests[0].input_ids;
    const auto& now = other.requests[0].input_ids;
    const auto common = std::ranges::mismatch(first, now).in1 - first.begin();
    kv::BlockKeyRoot root = *block_root(holder.info);
    root.salt = other.requests[0].kv.salt;
    EXPECT_EQ(source.keys,
              kv::chain_keys(kv::root_key(root),
                             std::span(now).first(static_cast<std::size_t>(common)), 16));
    EXPECT_EQ(metrics().find("sluice_lent_tokens_total 0"), std::string::npos);
}

TEST_F(AffinityTest, EachRankIsATargetOfItsOwnWithItsOwnCache) {
    open(2);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(turn_of("Hi " + std::to_string(i)).status, 200);
    std::array<std::array<int, 2>, 2> of_rank{};
    for (const port::GenerateRequest& request : worker->requests) ++of_rank[0].at(*request.dp_rank);
    for (const port::GenerateRequest& request : second->requests) ++of_rank[1].at(*request.dp_rank);
    EXPECT_EQ(of_rank, (std::array<std::array<int, 2>, 2>{{{2, 2}, {2, 2}}}));
}

}  // namespace
}  // namespace sluice::gateway
