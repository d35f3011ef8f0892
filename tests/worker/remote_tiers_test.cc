// Blocks that outlive their worker: in a shared directory, on a real redis-server, in a cache node and on its
// SSD after a restart. Whatever comes back, whatever is missing or damaged, the tokens and log-probabilities
// are those of one engine.

#include <gmock/gmock.h>

#include "kv/block_value.h"
#include "port/kv_orders.h"
#include "tests/kv/folder.h"
#include "tests/kvnode/fake_node.h"
#include "tests/support/certificates.h"
#include "tests/worker/block_place.h"
#include "tests/worker/support.h"
#include "worker/kv_cache.h"

namespace sluice::worker {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using kvnode::testing::RedisProcess;
using ::testing::HasSubstr;

constexpr std::size_t kBlock = engine::Engine::kBlockTokens;
constexpr std::size_t kBlocks = 10;
using Sources = std::map<std::string, std::uint64_t>;

/// A whole block with the same header, but for the checksums.
std::string with_other_bits(const std::string& value) {
    const auto block = kv::decode_block(value);
    EXPECT_TRUE(block.has_value());
    return kv::encode_block(block->header, block->payload.size(),
                            [&block](std::span<std::byte> payload) {
                                std::ranges::copy(block->payload, payload.begin());
                                payload.front() ^= std::byte{1};
                            });
}

class RemoteTiersTest : public ::testing::TestWithParam<std::string_view> {
protected:
    void SetUp() override {
        place_ = make_place(GetParam());
        if (!place_) GTEST_SKIP() << "there is no redis-server here";
    }

    [[nodiscard]] TestWorker::Setup setup(
        std::optional<kv::ForcedChoice> forced = kv::ForcedChoice::kLoad) const {
        TestWorker::Setup setup;
        setup.kv.stores = {place_->url()};
        setup.kv.forced = forced;
        setup.kv.find_time = setup.kv.load_time = kPatience;
        return setup;
    }

    static port::GenerateRequest story(std::uint32_t id) {
        port::GenerateRequest asked = request(1, kBlocks * kBlock + 5, 12);
        asked.rid = rid(id);
        asked.return_logprob = true;
        asked.kv.tenant = asked.kv.salt = "acme";
        return asked;
    }

    static Stream answer(TestWorker& worker, const port::GenerateRequest& request) {
        FrameReader reader(worker.port(), request);
        Stream stream = reader.rest();
        EXPECT_FALSE(stream.frames.empty());
        EXPECT_TRUE(worker.wait_until_published());
        return stream;
    }

    /// Leaves the story there with a worker that is gone afterwards; what it answered.
    Stream leave() {
        TestWorker worker(setup());
        const auto root =
            worker.thread().call([&] { return worker.server().engine()->key_root(); });
        keys_ = kv::KeyChain(root, {.shared = "acme"}).keys(story(1).input_ids);
        Stream stream = answer(worker, story(1));
        EXPECT_EQ(sources(stream), Sources{});
        EXPECT_GE(place_->count(), kBlocks);
        place_->restart();
        return stream;
    }

    [[nodiscard]] kv::BlockName name(std::size_t block) const {
        return {.tenant = "acme", .retention = Retention::kChat, .key = keys_[block]};
    }
    static Sources sources(const Stream& stream) {
        return stream.frames.back().cached_tokens_by_source;
    }
    [[nodiscard]] Sources found(std::size_t blocks) const {
        return {{place_->source(), blocks * kBlock}};
    }
    static std::vector<port::PositionLogprobs> logprobs(const Stream& stream) {
        std::vector<port::PositionLogprobs> all;
        for (const port::GenerateFrame& frame : stream.frames)
            all.insert(all.end(), frame.output_logprobs.begin(), frame.output_logprobs.end());
        return all;
    }
    static void expect_same(const Stream& stream, const Stream& whole) {
        EXPECT_EQ(stream.tokens(), whole.tokens());
        EXPECT_EQ(logprobs(stream), logprobs(whole));
    }

    std::unique_ptr<Place> place_;
    std::vector<kv::BlockKey> keys_;
};

INSTANTIATE_TEST_SUITE_P(Places, RemoteTiersTest,
                         ::testing::Values("Directory", "Redis", "Node", "SsdNode"),
                         [](const auto& info) { return std::string(info.param); });

/// What is in a node's memory alone nobody can damage.
class DamagedTiersTest : public RemoteTiersTest {};

INSTANTIATE_TEST_SUITE_P(Places, DamagedTiersTest,
                         ::testing::Values("Directory", "Redis", "SsdNode"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(RemoteTiersTest, ANewWorkerGoesOnWithWhatAnotherLeft) {
    const Stream whole = leave();
    EXPECT_EQ(whole.tokens(), engine_tokens(story(1)));
    TestWorker worker(setup());
    const Stream again = answer(worker, story(2));
    expect_same(again, whole);
    EXPECT_EQ(sources(again), found(kBlocks));
    EXPECT_TRUE(worker.wait_until_idle());
}

TEST_P(RemoteTiersTest, AHoleCostsWhatIsInIt) {
    const Stream whole = leave();
    for (const std::size_t lost : {0U, 4U, 9U}) {
        place_->lose(name(lost));
        {
            TestWorker worker(setup());
            const Stream again = answer(worker, story(2));
            expect_same(again, whole);
            EXPECT_EQ(sources(again), found(kBlocks - 1)) << lost;
        }
        // It was computed and left there again.
        TestWorker worker(setup());
        EXPECT_EQ(sources(answer(worker, story(3))), found(kBlocks));
    }
}

TEST_P(DamagedTiersTest, ADamagedBlockIsAMissAndIsReplaced) {
    const Stream whole = leave();
    place_->damage(name(3));
    {
        TestWorker worker(setup());
        const Stream again = answer(worker, story(2));
        expect_same(again, whole);
        EXPECT_EQ(sources(again), found(kBlocks - 1));
        TestClient client;
        EXPECT_THAT(client.fetch({.url = worker.url("/metrics")}).body,
                    HasSubstr(place_->checks_what_it_reads() ? "sluice_kv_corrupt_total 0\n"
                                                             : "sluice_kv_corrupt_total 1\n"));
    }
    TestWorker worker(setup());
    EXPECT_EQ(sources(answer(worker, story(3))), found(kBlocks));
}

TEST_P(RemoteTiersTest, ASplitTakesFromItOnBothSides) {
    const Stream whole = leave();
    TestWorker left(setup());
    TestWorker right(setup());
    port::GenerateRequest first = story(2);
    first.phase = port::Phase::kPrefill;
    const Stream prefilled = answer(left, first);
    ASSERT_TRUE(prefilled.frames.back().kv.has_value());
    EXPECT_EQ(sources(prefilled), found(kBlocks));
    port::GenerateRequest second = story(3);
    second.phase = port::Phase::kDecode;
    second.resume_output_ids = prefilled.tokens();
    second.kv.sources = {prefilled.frames.back().kv->source};
    second.kv.sources[0].url = left.url();
    Stream decoded = answer(right, second);
    decoded.frames.insert(decoded.frames.begin(), prefilled.frames.begin(), prefilled.frames.end());
    expect_same(decoded, whole);
    // The same, but the worker that holds the blocks is gone: the tier has all but the tail.
    second.rid = rid(4);
    second.kv.sources[0].url = "http://127.0.0.1:1";
    TestWorker third(setup());
    Stream alone = answer(third, second);
    EXPECT_EQ(sources(alone), found(kBlocks));
    alone.frames.insert(alone.frames.begin(), prefilled.frames.begin(), prefilled.frames.end());
    expect_same(alone, whole);
}

TEST_P(RemoteTiersTest, AnAnswerResumedAtAnyTokenGoesOnWithTheSameBits) {
    const Stream whole = leave();
    const std::vector<TokenId> tokens = whole.tokens();
    TestWorker worker(setup());
    for (std::size_t given = 1; given < tokens.size(); given += 3) {
        port::GenerateRequest resumed = story(static_cast<std::uint32_t>(10 + given));
        resumed.resume_output_ids.assign(tokens.begin(),
                                         tokens.begin() + static_cast<std::ptrdiff_t>(given));
        const Stream rest = answer(worker, resumed);
        EXPECT_TRUE(std::ranges::equal(rest.tokens(), std::span(tokens).subspan(given)));
        const auto all = logprobs(whole);
        EXPECT_TRUE(std::ranges::equal(logprobs(rest), std::span(all).subspan(given)));
    }
}

TEST_P(RemoteTiersTest, NobodyElseFindsIt) {
    const Stream whole = leave();
    TestWorker worker(setup());
    port::GenerateRequest tenant = story(2);
    tenant.kv.tenant = tenant.kv.salt = "other";
    port::GenerateRequest thief = story(3);
    thief.kv.tenant =
        "other";  // With the salt of the first: names alone don't open anything either.
    port::GenerateRequest user = story(4);
    user.kv.own_salt = "anna";
    EXPECT_EQ(sources(answer(worker, tenant)), Sources{});
    TestWorker second(setup());
    EXPECT_EQ(sources(answer(second, thief)), Sources{});
    TestWorker third(setup());
    EXPECT_EQ(sources(answer(third, user)), Sources{});
    TestWorker fourth(setup());
    EXPECT_EQ(sources(answer(fourth, story(5))), found(kBlocks));
}

// Other weights, and the same ones in another type.
TEST_P(RemoteTiersTest, AnotherModelFindsNothing) {
    static_cast<void>(leave());
    for (const auto& [type, seed] :
         {std::pair{checkpoint::DataType::kF32, 6}, std::pair{checkpoint::DataType::kF16, 5}}) {
        TestWorker::Setup other = setup();
        other.model = random_model(type, static_cast<std::uint64_t>(seed));
        TestWorker worker(other);
        EXPECT_EQ(sources(answer(worker, story(2))), Sources{});
        TestWorker again(other);
        EXPECT_EQ(sources(answer(again, story(3))), found(kBlocks)) << "what it left itself";
    }
    TestWorker first(setup());
    EXPECT_EQ(sources(answer(first, story(4))), found(kBlocks));
}

TEST_P(RemoteTiersTest, AnotherBuildFindsItOnlyIfThatIsAllowed) {
    TestWorker::Setup compatible = setup();
    compatible.kv.compatible_builds = true;
    TestWorker::Setup exact = setup();
    {
        TestWorker worker(compatible);
        static_cast<void>(answer(worker, story(1)));
    }
    TestWorker other(exact);
    EXPECT_EQ(sources(answer(other, story(2))), Sources{});
    TestWorker same(compatible);
    EXPECT_EQ(sources(answer(same, story(3))), found(kBlocks));
}

TEST_P(RemoteTiersTest, APromptIsAnsweredWhateverTheTierPromises) {
    const Stream whole = leave();
    TestWorker worker(setup(std::nullopt));
    for (std::uint32_t i = 2; i < 8; ++i) expect_same(answer(worker, story(i)), whole);
}

// A long prompt's blocks are of use to others before its own first token.
TEST(PublicationTest, BlocksAreLeftWhileTheirPromptIsComputed) {
    NodePlace node;
    TestWorker::Setup setup;
    setup.engine.prefill_chunk = kBlock;
    setup.kv.stores = {node.url()};
    setup.kv.forced = kv::ForcedChoice::kRecompute;
    TestWorker worker(setup);
    worker.gate.close();
    constexpr std::size_t kLong = 300;
    FrameReader reader(worker.port(), request(1, kLong * kBlock + 1, 2));
    std::size_t steps = 0;
    while (node.count() < 3) {
        ASSERT_LT(++steps, kLong);
        worker.gate.allow();
        const auto frame = reader.next();
        ASSERT_TRUE(frame.has_value());
        EXPECT_EQ(frame->computed_tokens, steps * kBlock);
        EXPECT_TRUE(frame->output_ids.empty());
    }
    worker.gate.open();
    EXPECT_EQ(reader.rest().tokens().size(), 2U);
}

// Two builds that should compute the same bits, and one doesn't.
TEST(OtherBitsTest, OtherBitsUnderTheSameNameAreCountedAndTheFirstStay) {
    NodePlace node;
    TestWorker::Setup setup;
    setup.kv.stores = {node.url()};
    setup.kv.forced = kv::ForcedChoice::kRecompute;
    const port::GenerateRequest asked = request(1, 6 * kBlock + 1, 8);
    const std::vector<TokenId> expected = engine_tokens(asked);
    const auto published = [&] {
        TestWorker worker(setup);
        FrameReader reader(worker.port(), asked);
        EXPECT_EQ(reader.rest().tokens(), expected);
        EXPECT_TRUE(worker.wait_until_published());
        TestClient client;
        return client.fetch({.url = worker.url("/metrics")}).body;
    };
    EXPECT_THAT(published(), HasSubstr("sluice_numerics_violations_total 0\n"));
    const std::string name = node.any_name();
    const std::string other = with_other_bits(node.value(name));
    ASSERT_EQ(node.ask({"DEL", name}), ":1\r\n");
    ASSERT_EQ(node.ask({"SET", name, other}), "+OK\r\n");
    const std::string metrics = published();
    EXPECT_THAT(metrics, HasSubstr("sluice_numerics_violations_total 1\n"));
    EXPECT_THAT(metrics,
                HasSubstr("sluice_kv_published_total{result=\"differs\",tier=\"node\"} 1\n"));
    EXPECT_EQ(node.value(name), other);
}

/// What a disk may do to a store, and what a worker does about it: it computes.
TEST(FaultyDirectoryTest, WhateverTheDiskDoesNobodyWaitsAndNothingIsWrong) {
    const kv::testing::Folder folder;
    TestWorker::Setup setup;
    setup.kv.stores = {"dir://" + folder.path().string()};
    setup.kv.forced = kv::ForcedChoice::kLoad;
    setup.kv.find_time = setup.kv.load_time = kPatience;
    const port::GenerateRequest asked = request(1, 6 * kBlock + 1, 8);
    const std::vector<TokenId> expected = engine_tokens(asked);
    const auto sources = [&](const TestWorker::Setup& with) {
        TestWorker worker(with);
        FrameReader reader(worker.port(), asked);
        const Stream stream = reader.rest();
        EXPECT_EQ(stream.tokens(), expected);
        EXPECT_TRUE(worker.wait_until_published());
        EXPECT_TRUE(worker.wait_until_idle());
        return stream.frames.back().cached_tokens_by_source;
    };
    const Sources all{{"directory", 6 * kBlock}};
    EXPECT_EQ(sources(setup), Sources{});
    EXPECT_EQ(sources(setup), all);
    for (const std::string_view fault :
         {"disk_flip", "disk_short", "disk_error", "disk_slow=300ms"}) {
        SCOPED_TRACE(fault);
        TestWorker::Setup faulty = setup;
        faulty.kv.faults = *parse_fault_points(fault);
        faulty.kv.find_time = faulty.kv.load_time = milliseconds(50);
        EXPECT_EQ(sources(faulty), Sources{});
        // What was found damaged was taken away, and is left there anew.
        static_cast<void>(sources(setup));
        EXPECT_EQ(sources(setup), all);
    }
    TestWorker::Setup full = setup;
    full.kv.faults.disk_full = true;
    EXPECT_EQ(sources(full), all);
}

TEST(TlsNodeTest, ANodeIsBelievedByTheAuthoritiesThatTheWorkerWasTold) {
    if (kvnode::testing::redis_server_program().empty()) GTEST_SKIP() << "no redis-server here";
    net::testing::Certificates certificates;
    certificates.make("redis");
    const RedisProcess redis({"--tls-cert-file", certificates.certificate("redis"),
                              "--tls-key-file", certificates.key("redis"), "--tls-ca-cert-file",
                              certificates.ca_file(), "--tls-auth-clients", "no"});
    TestWorker::Setup setup;
    setup.kv.stores = {"rediss://" + redis.place()};
    setup.kv.forced = kv::ForcedChoice::kLoad;
    const port::GenerateRequest asked = request(1, 6 * kBlock + 1, 8);
    const auto sources = [&](const std::string& ca_file) {
        setup.kv.ca_file = ca_file;
        TestWorker worker(setup);
        FrameReader reader(worker.port(), asked);
        const Stream stream = reader.rest();
        EXPECT_EQ(stream.tokens(), engine_tokens(asked));
        EXPECT_TRUE(worker.wait_until_published());
        return stream.frames.back().cached_tokens_by_source;
    };
    EXPECT_EQ(sources(certificates.ca_file()), Sources{});
    EXPECT_EQ(sources(certificates.ca_file()), (Sources{{"node", 6 * kBlock}}));
    const net::testing::Certificates of_others;
    EXPECT_EQ(sources(of_others.ca_file()), Sources{});

    net::EventLoop loop;
    KvCache bad(loop, {.ca_file = "/nowhere/ca.pem"});
    EXPECT_FALSE(bad.open_stores().has_value()) << "said at the start, not when a node comes";
}

// Of a node: what a request's prompt of `blocks` blocks has asked it, the first time and the second,
// when the pool has all of it. Nobody waits for the answers to `touches`: the test does.
class FakeNodeTest : public ::testing::Test {
protected:
    void ask_twice(std::size_t blocks, std::size_t touches = 0) {
        TestWorker::Setup setup;
        setup.kv.stores = {node_.url()};
        setup.kv.find_time = setup.kv.load_time = kPatience;
        TestWorker worker(setup);
        for (std::vector<std::vector<std::string>>* const asked : {&first_, &second_}) {
            const std::size_t before = node_.requests().size();
            const std::size_t touched = names(node_.requests(), "EXPIRE").size();
            port::GenerateRequest again = request(1, blocks * kBlock + 1, 2);
            again.rid = rid(asked == &first_ ? 1 : 2);
            FrameReader reader(worker.port(), again);
            EXPECT_FALSE(reader.rest().frames.empty());
            EXPECT_TRUE(worker.wait_until_published());
            if (asked == &second_) wait_for_touches(touched + touches);
            *asked = node_.requests();
            asked->erase(asked->begin(), asked->begin() + static_cast<std::ptrdiff_t>(before));
        }
        const auto root =
            worker.thread().call([&] { return worker.server().engine()->key_root(); });
        keys_ = kv::KeyChain(root, {}).keys(request(1, blocks * kBlock, 2).input_ids);
    }
    void wait_for_touches(std::size_t count) {
        const auto end = std::chrono::steady_clock::now() + kPatience;
        while (names(node_.requests(), "EXPIRE").size() < count &&
               std::chrono::steady_clock::now() < end)
            std::this_thread::yield();
    }
    [[nodiscard]] std::string name(std::size_t block, Retention retention) const {
        return kv::to_wire({.tenant = "", .retention = retention, .key = keys_[block]});
    }
    static std::vector<std::string> names(const std::vector<std::vector<std::string>>& requests,
                                          std::string_view command) {
        std::vector<std::string> names;
        for (const auto& words : requests)
            if (words.front() == command) names.push_back(words[1]);
        return names;
    }

    kvnode::testing::FakeNode node_;
    std::vector<std::vector<std::string>> first_;
    std::vector<std::vector<std::string>> second_;
    std::vector<kv::BlockKey> keys_;
};

TEST_F(FakeNodeTest, WhatANodeHasRefusedItIsNotToldAgain) {
    node_.fault = kvnode::testing::FakeNode::Fault::kFull;
    ask_twice(6);
    EXPECT_EQ(names(first_, "SET").size(), 6U);
    EXPECT_TRUE(names(second_, "SET").empty());
    EXPECT_TRUE(names(second_, "EXISTS").empty());
}

TEST_F(FakeNodeTest, AHitInThePoolIsAUseOfTheLastBlockOfEachExtentFromTheLeafToTheRoot) {
    ask_twice(35, 6);
    EXPECT_EQ(names(first_, "SET").size(), 35U);
    EXPECT_TRUE(names(second_, "SET").empty());
    std::vector<std::string> expected;
    for (const std::size_t last : {34, 31, 15})
        for (const Retention retention : {Retention::kChat, Retention::kAgent})
            expected.push_back(name(last, retention));
    EXPECT_EQ(names(second_, "EXPIRE"), expected);
}

TEST(LostNodeTest, ANodeThatDiesCostsNoRequest) {
    if (kvnode::testing::redis_server_program().empty()) GTEST_SKIP() << "no redis-server here";
    RedisProcess redis;
    TestWorker::Setup setup;
    setup.kv.stores = {"redis://" + redis.place()};
    setup.kv.forced = kv::ForcedChoice::kLoad;
    TestWorker worker(setup);
    for (std::uint32_t i = 1; i < 12; ++i) {
        if (i == 5) redis.kill();
        const port::GenerateRequest asked = request(i % 4, 6 * kBlock, 6);
        FrameReader reader(worker.port(), asked);
        EXPECT_EQ(reader.rest().tokens(), engine_tokens(asked)) << i;
    }
    EXPECT_TRUE(worker.wait_until_idle());
}

// What is in the pool was left at the old node a moment ago; the new one has nothing yet.
TEST(OtherNodesTest, AHitIsLeftAtTheNodesThatThereAreNow) {
    if (kvnode::testing::redis_server_program().empty()) GTEST_SKIP() << "no redis-server here";
    const RedisProcess before;
    const RedisProcess now;
    TestWorker::Setup setup;
    setup.kv.stores = {"redis://" + before.place()};
    setup.kv.find_time = setup.kv.load_time = kPatience;
    TestWorker worker(setup);
    const auto ask = [&worker](std::uint32_t id) {
        port::GenerateRequest asked = request(1, 6 * kBlock + 1, 2);
        asked.rid = rid(id);
        FrameReader reader(worker.port(), asked);
        static_cast<void>(reader.rest());
        EXPECT_TRUE(worker.wait_until_published());
    };
    ask(1);
    EXPECT_EQ(before.ask("DBSIZE"), ":6");
    TestClient client;
    EXPECT_EQ(client
                  .fetch(post(worker.url("/kv/nodes"),
                              port::to_json(port::KvNodesOrder{
                                  .epoch = 1, .nodes = {"redis://" + now.place()}})))
                  .status,
              200);
    ask(2);
    EXPECT_EQ(now.ask("DBSIZE"), ":6");
}

}  // namespace
}  // namespace sluice::worker
