// A worker that leaves its blocks in other tiers and takes them from there: whichever it takes, and
// whichever are missing, the tokens are those of one engine.

#include <gmock/gmock.h>

#include "tests/worker/support.h"

namespace sluice::worker {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr std::size_t kBlock = engine::Engine::kBlockTokens;
using Sources = std::map<std::string, std::uint64_t>;

/// A pool of 24 blocks, which another prompt fills; loads whatever can be loaded.
TestWorker::Setup small_pool() {
    return {.engine = {.pool_tokens = 24 * kBlock, .running_max = 8},
            .kv = {.dram_bytes = 64 << 20, .forced = kv::ForcedChoice::kLoad}};
}

Stream answer(TestWorker& worker, const port::GenerateRequest& request) {
    FrameReader reader(worker.port(), request);
    Stream stream = reader.rest();
    EXPECT_FALSE(stream.frames.empty());
    EXPECT_TRUE(stream.frames.back().finish_reason.has_value());
    EXPECT_TRUE(worker.wait_until_published());
    return stream;
}

/// Fills the pool with something else.
void push_out(TestWorker& worker, std::uint32_t number) {
    port::GenerateRequest other = request(number, 23 * kBlock + 30, 2);
    other.kv.retention = Retention::kNone;
    static_cast<void>(answer(worker, other));
}

port::GenerateRequest story(std::uint32_t id, std::size_t prompt = 10 * kBlock + 5) {
    port::GenerateRequest asked = request(1, prompt, 12);
    asked.rid = rid(id);
    asked.kv.tenant = "acme";
    asked.kv.salt = "acme";
    asked.return_logprob = true;
    return asked;
}

/// Tokens and log-probabilities.
struct Bits {
    std::vector<TokenId> tokens;
    std::vector<port::PositionLogprobs> logprobs;
    bool operator==(const Bits&) const = default;
};

Bits bits(const Stream& stream) {
    Bits bits{.tokens = stream.tokens()};
    for (const port::GenerateFrame& frame : stream.frames)
        bits.logprobs.insert(bits.logprobs.end(), frame.output_logprobs.begin(),
                             frame.output_logprobs.end());
    EXPECT_EQ(bits.tokens.size(), bits.logprobs.size());
    return bits;
}

/// Of a worker that has nothing yet, and no tiers.
Bits cold(const port::GenerateRequest& asked) {
    TestWorker worker;
    return bits(answer(worker, asked));
}

std::vector<kv::BlockKey> keys_of(TestWorker& worker, const port::GenerateRequest& asked) {
    const auto root = worker.thread().call([&] { return worker.server().engine()->key_root(); });
    return kv::KeyChain(root, {.shared = asked.kv.salt}).keys(asked.input_ids);
}

/// By the frame with the first token.
std::optional<port::KvDecision> told(const Stream& stream) {
    for (const port::GenerateFrame& frame : stream.frames)
        if (!frame.output_ids.empty()) return frame.kv_decision;
    return std::nullopt;
}

Sources sources(const Stream& stream) { return stream.frames.back().cached_tokens_by_source; }

TEST(TiersTest, WhatLeftThePoolComesBackFromMemory) {
    TestWorker worker(small_pool());
    const auto expected = cold(story(1));
    EXPECT_EQ(bits(answer(worker, story(1))), expected);
    EXPECT_EQ(sources(answer(worker, story(2))), (Sources{{"pool", 10 * kBlock}}));
    push_out(worker, 3);
    const Stream again = answer(worker, story(4));
    EXPECT_EQ(bits(again), expected);
    EXPECT_EQ(sources(again), (Sources{{"dram", 10 * kBlock}}));
    EXPECT_EQ(again.frames.back().cached_tokens, 10 * kBlock);
    EXPECT_TRUE(worker.wait_until_idle());
}

// What was predicted, and what came of it: with the first token, and as metrics.
TEST(TiersTest, EachDecisionAndItsOutcomeAreTold) {
    TestWorker worker(small_pool());
    EXPECT_EQ(told(answer(worker, story(1))), std::nullopt) << "nobody had anything";
    push_out(worker, 3);
    const auto decision = told(answer(worker, story(2)));
    ASSERT_TRUE(decision.has_value());
    ASSERT_EQ(decision->loads.size(), 1U);
    EXPECT_EQ(decision->loads[0].source, "dram");
    EXPECT_EQ(decision->loads[0].choice, "load");
    EXPECT_EQ(decision->loads[0].tokens, 10 * kBlock);
    EXPECT_GT(decision->loads[0].predicted_us, 0U);
    EXPECT_GT(decision->loads[0].compute_us, 0U);
    EXPECT_GT(decision->loads[0].took_us, 0U);
    EXPECT_GT(decision->compute_predicted_us, 0U);
    EXPECT_GT(decision->compute_took_us, 0U);
    TestClient client;
    const std::string metrics = client.fetch({.url = worker.url("/metrics")}).body;
    EXPECT_THAT(metrics, HasSubstr("sluice_kv_choices_total{choice=\"load\",tier=\"dram\"} 1\n"));
    EXPECT_THAT(metrics, HasSubstr("sluice_kv_load_time_ratio_count{tier=\"dram\"} 1\n"));
    EXPECT_THAT(metrics, ContainsRegex("sluice_kv_compute_time_ratio_count [1-9]"));
}

// Each full block of each prompt is found in the pool, found elsewhere, or found nowhere.
TEST(TiersTest, MissesAreWhatNobodyHad) {
    TestWorker worker(small_pool());
    const auto value = [&worker](const std::string& series) {
        TestClient client;
        const std::string text = client.fetch({.url = worker.url("/metrics")}).body;
        const auto at = text.find("\n" + series + " ");
        return at == std::string::npos ? 0 : std::stoi(text.substr(at + series.size() + 2));
    };
    static_cast<void>(answer(worker, story(1)));
    EXPECT_EQ(value(R"(sluice_kv_misses_total{tier="pool"})"), 10);
    static_cast<void>(answer(worker, story(2)));
    EXPECT_EQ(value(R"(sluice_kv_hits_total{tier="pool"})"), 10);
    EXPECT_EQ(value(R"(sluice_kv_misses_total{tier="pool"})"), 10);
}

TEST(TiersTest, AnAnswerIsKeptForTheNextTurn) {
    TestWorker worker(small_pool());
    port::GenerateRequest first = story(1, 3 * kBlock);
    first.sampling_params.max_new_tokens = 2 * kBlock;
    const auto tokens = answer(worker, first).tokens();
    push_out(worker, 2);
    port::GenerateRequest next = first;
    next.rid = rid(3);
    next.input_ids.insert(next.input_ids.end(), tokens.begin(), tokens.end());
    next.input_ids.push_back(5);
    const auto expected = cold(next);
    const Stream stream = answer(worker, next);
    EXPECT_EQ(bits(stream), expected);
    // The last token's row was never computed, so neither was its block.
    EXPECT_EQ(sources(stream), (Sources{{"dram", 4 * kBlock}}));
}

TEST(TiersTest, NobodyElseFindsIt) {
    TestWorker worker(small_pool());
    static_cast<void>(answer(worker, story(1)));
    push_out(worker, 2);
    port::GenerateRequest other_tenant = story(3);
    other_tenant.kv.tenant = other_tenant.kv.salt = "other";
    port::GenerateRequest other_user = story(4);
    other_user.kv.own_salt = "anna";
    other_user.kv.own_from = 100;
    port::GenerateRequest only_by_name = story(5);
    only_by_name.kv.salt = "other";
    const auto expected = cold(story(1));
    for (const auto& request : {other_tenant, only_by_name}) {
        const Stream stream = answer(worker, request);
        EXPECT_EQ(bits(stream), expected);
        EXPECT_EQ(sources(stream), Sources{});
        push_out(worker, 6);
    }
    EXPECT_EQ(sources(answer(worker, other_user)), (Sources{{"dram", kBlock}}));
}

TEST(TiersTest, WhatIsToLeaveNothingLeavesNothing) {
    TestWorker worker(small_pool());
    port::GenerateRequest secret = story(1);
    secret.kv.retention = Retention::kNone;
    static_cast<void>(answer(worker, secret));
    push_out(worker, 2);
    EXPECT_EQ(sources(answer(worker, story(3))), Sources{});
}

TEST(TiersTest, ClassesFindEachOthersBlocks) {
    TestWorker worker(small_pool());
    port::GenerateRequest agent = story(1);
    agent.kv.retention = Retention::kAgent;
    static_cast<void>(answer(worker, agent));
    push_out(worker, 2);
    EXPECT_EQ(sources(answer(worker, story(3))), (Sources{{"dram", 10 * kBlock}}));
}

TEST(TiersTest, WhatIsComputedAgainHasTheSameBits) {
    TestWorker::Setup setup = small_pool();
    setup.kv.forced = kv::ForcedChoice::kRecompute;
    TestWorker worker(setup);
    const auto expected = cold(story(1));
    for (std::uint32_t i = 1; i < 6; i += 2) {
        const Stream stream = answer(worker, story(i));
        EXPECT_EQ(bits(stream), expected);
        EXPECT_EQ(sources(stream), Sources{});
        push_out(worker, i + 1);
    }
    TestClient client;
    const std::string metrics = client.fetch({.url = worker.url("/metrics")}).body;
    EXPECT_NE(metrics.find("sluice_numerics_violations_total 0"), std::string::npos);
}

TEST(TiersTest, AnotherWorkersPoolIsASource) {
    TestWorker left;
    TestWorker right({.kv = {.forced = kv::ForcedChoice::kLoad}});
    const auto expected = cold(story(1));
    static_cast<void>(answer(left, story(1)));
    port::GenerateRequest asked = story(2);
    port::KvSource source{.url = left.url(), .keys = keys_of(left, asked)};
    ASSERT_EQ(source.keys.size(), 10U);
    source.keys.resize(7);
    asked.kv.sources = {source};
    const Stream stream = answer(right, asked);
    EXPECT_EQ(bits(stream), expected);
    EXPECT_EQ(sources(stream), (Sources{{"peer", 7 * kBlock}}));
    EXPECT_TRUE(left.wait_until_idle());
}

TEST(TiersTest, AnotherWorkersMemoryIsASourceForTheSameTenant) {
    TestWorker left(small_pool());
    TestWorker right(small_pool());
    const auto expected = bits(answer(left, story(1)));
    push_out(left, 2);
    port::GenerateRequest asked = story(3);
    asked.kv.sources = {{.url = left.url(), .hold = {}, .keys = keys_of(left, asked)}};
    port::GenerateRequest other = asked;
    other.rid = rid(5);
    other.kv.tenant = "other";
    EXPECT_EQ(sources(answer(right, other)), Sources{});
    push_out(right, 4);
    asked.kv.tenant = "acme";
    const Stream stream = answer(right, asked);
    EXPECT_EQ(bits(stream), expected);
    EXPECT_EQ(sources(stream), (Sources{{"peer", 10 * kBlock}}));
}

TEST(TiersTest, ASourceThatIsGoneCostsNothingButTime) {
    TestWorker right({.kv = {.forced = kv::ForcedChoice::kLoad}});
    std::string gone;
    {
        const TestWorker left;
        gone = left.url();
    }
    port::GenerateRequest asked = story(2);
    asked.kv.sources = {{.url = gone, .keys = {sha256("not ours")}}};
    const Stream stream = answer(right, asked);
    EXPECT_EQ(bits(stream), cold(story(1)));
    EXPECT_EQ(sources(stream), Sources{});
}

TEST(TiersTest, ManyAtOnceGetTheirOwn) {
    TestWorker worker(small_pool());
    std::vector<std::unique_ptr<FrameReader>> readers;
    for (std::uint32_t round = 0; round < 3; ++round) {
        for (std::uint32_t i = 0; i < 6; ++i) {
            port::GenerateRequest asked = request(i, 3 * kBlock + 9 * i, 20);
            asked.rid = rid(100 * (round + 1) + i);
            readers.push_back(std::make_unique<FrameReader>(worker.port(), asked));
        }
        for (std::uint32_t i = 0; i < 6; ++i)
            EXPECT_EQ(readers[readers.size() - 6 + i]->rest().tokens(),
                      engine_tokens(request(i, 3 * kBlock + 9 * i, 20)));
    }
    EXPECT_TRUE(worker.wait_until_idle());
}

}  // namespace
}  // namespace sluice::worker
