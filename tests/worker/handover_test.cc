// Split requests between two workers over real sockets, and everything that can go wrong on the way:
// whatever does, the tokens are those of one engine, and in the end nobody holds anything.

#include "kv/block_value.h"
#include "port/kv_pull.h"
#include "port/port_error.h"
#include "tests/worker/support.h"

namespace sluice::worker {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using ::testing::HasSubstr;

constexpr std::size_t kBlock = engine::Engine::kBlockTokens;

/// The frame that ends a prefill.
port::GenerateFrame prefill(TestWorker& worker, port::GenerateRequest request) {
    request.phase = port::Phase::kPrefill;
    FrameReader reader(worker.port(), request);
    const Stream stream = reader.rest();
    EXPECT_FALSE(stream.frames.empty());
    EXPECT_TRUE(stream.frames.back().kv.has_value());
    return stream.frames.back();
}

port::GenerateRequest decode_of(port::GenerateRequest request, const port::GenerateFrame& handover,
                                const std::string& url) {
    request.phase = port::Phase::kDecode;
    request.resume_output_ids.insert(request.resume_output_ids.end(), handover.output_ids.begin(),
                                     handover.output_ids.end());
    request.kv.sources = {handover.kv->source};
    request.kv.sources[0].url = url;
    return request;
}

std::vector<TokenId> whole(const port::GenerateFrame& handover, const Stream& rest) {
    std::vector<TokenId> tokens = handover.output_ids;
    const std::vector<TokenId> others = rest.tokens();
    tokens.insert(tokens.end(), others.begin(), others.end());
    return tokens;
}

Stream decode(TestWorker& worker, const port::GenerateRequest& request) {
    FrameReader reader(worker.port(), request);
    Stream stream = reader.rest();
    EXPECT_FALSE(stream.frames.empty());
    return stream;
}

TEST(HandOverTest, ASplitGivesTheTokensOfOneWorker) {
    TestWorker left;
    TestWorker right;
    for (const std::size_t prompt : {1U, 63U, 64U, 65U, 200U, 1000U}) {
        const port::GenerateRequest asked = request(static_cast<std::uint32_t>(prompt), prompt, 20);
        const port::GenerateFrame first = prefill(left, asked);
        EXPECT_EQ(first.kv->source.keys.size(), prompt / kBlock);
        EXPECT_EQ(first.kv->source.tail_tokens, prompt % kBlock);
        EXPECT_EQ(first.kv->hold_until_ms, 30'000U);
        EXPECT_EQ(left.holds(), 1U);
        const Stream rest = decode(right, decode_of(asked, first, left.url()));
        EXPECT_EQ(whole(first, rest), engine_tokens(asked)) << prompt;
        EXPECT_EQ(rest.frames.back().cached_tokens_by_source,
                  (std::map<std::string, std::uint64_t>{{"peer", prompt}}));
        EXPECT_EQ(rest.frames.back().computed_tokens, 19U);
        EXPECT_TRUE(left.wait_until_idle());
        EXPECT_TRUE(right.wait_until_idle());
    }
}

TEST(HandOverTest, WhatIsInThePoolIsNotPulled) {
    TestWorker left;
    TestWorker right;
    const port::GenerateRequest asked = request(1, 200, 20);
    port::GenerateRequest before = asked;
    before.input_ids.resize(129);
    before.rid = rid(2);
    static_cast<void>(decode(right, before));
    const port::GenerateFrame first = prefill(left, asked);
    const Stream rest = decode(right, decode_of(asked, first, left.url()));
    EXPECT_EQ(whole(first, rest), engine_tokens(asked));
    EXPECT_EQ(rest.frames.back().cached_tokens_by_source,
              (std::map<std::string, std::uint64_t>{{"peer", 72}, {"pool", 128}}));
}

TEST(HandOverTest, AWorkerMayDecodeWhatItPrefilled) {
    TestWorker worker;
    const port::GenerateRequest asked = request(1, 100, 20);
    const port::GenerateFrame first = prefill(worker, asked);
    const Stream rest = decode(worker, decode_of(asked, first, worker.url()));
    EXPECT_EQ(whole(first, rest), engine_tokens(asked));
    EXPECT_EQ(rest.frames.back().cached_tokens, 100U);
    EXPECT_TRUE(worker.wait_until_idle());
}

TEST(HandOverTest, AnAnswerThatEndsWithItsFirstTokenIsNotHandedOver) {
    TestWorker worker;
    port::GenerateRequest asked = request(1, 100, 1);
    asked.phase = port::Phase::kPrefill;
    FrameReader reader(worker.port(), asked);
    const Stream stream = reader.rest();
    EXPECT_FALSE(stream.frames.back().kv.has_value());
    EXPECT_EQ(stream.frames.back().finish_reason->type, port::FinishType::kLength);
    EXPECT_TRUE(worker.wait_until_idle());
}

TEST(HandOverTest, AnAnswerInOnePieceIsHandedOverToo) {
    TestWorker left;
    TestWorker right;
    TestClient client;
    port::GenerateRequest asked = request(1, 100, 20);
    asked.stream = false;
    asked.phase = port::Phase::kPrefill;
    const auto answer = client.fetch(post(left.url("/generate"), port::to_json(asked)));
    const auto first = port::parse_generate_frame(answer.body);
    ASSERT_TRUE(first.has_value() && first->kv.has_value()) << answer.body;
    const auto rest = client.fetch(
        post(right.url("/generate"), port::to_json(decode_of(asked, *first, left.url()))));
    const auto last = port::parse_generate_frame(rest.body);
    ASSERT_TRUE(last.has_value());
    EXPECT_EQ(whole(*first, {.frames = {*last}}), engine_tokens(asked));
}

/// What can become of the blocks on their way.
struct Mishap {
    std::string name;
    FaultPoints faults;        ///< Of the worker that holds.
    std::uint64_t cached = 0;  ///< Of 200 tokens, those that arrive all the same.
};

class MishapTest : public ::testing::TestWithParam<Mishap> {};

INSTANTIATE_TEST_SUITE_P(Mishaps, MishapTest,
                         ::testing::Values(Mishap{"CutOff", {.pull_cut = true}, 128},
                                           Mishap{"FlippedBit", {.pull_flip = true}, 0},
                                           Mishap{"Hang", {.pull_hang = true}, 0}),
                         [](const auto& info) { return info.param.name; });

TEST_P(MishapTest, IsComputedWithTheSameTokens) {
    TestWorker left({.engine = {.pool_tokens = 65'536, .faults = GetParam().faults}});
    TestWorker right({.kv = {.stall_time = milliseconds(50)}});
    const port::GenerateRequest asked = request(1, 200, 20);
    const port::GenerateFrame first = prefill(left, asked);
    const Stream rest = decode(right, decode_of(asked, first, left.url()));
    EXPECT_EQ(whole(first, rest), engine_tokens(asked));
    EXPECT_EQ(rest.frames.back().cached_tokens, GetParam().cached);
    EXPECT_TRUE(left.wait_until_idle());
    EXPECT_TRUE(right.wait_until_idle());
}

TEST_P(MishapTest, BeyondItsBoundTheDecodeIsRefused) {
    TestWorker left({.engine = {.pool_tokens = 65'536, .faults = GetParam().faults}});
    TestWorker right({.kv = {.stall_time = milliseconds(50), .recompute_max = 71}});
    const port::GenerateRequest asked = request(1, 200, 20);
    const port::GenerateFrame first = prefill(left, asked);
    const Stream rest = decode(right, decode_of(asked, first, left.url()));
    ASSERT_EQ(rest.frames.size(), 1U);
    EXPECT_TRUE(rest.frames[0].output_ids.empty());
    ASSERT_TRUE(rest.frames[0].finish_reason.has_value());
    EXPECT_EQ(rest.frames[0].finish_reason->code, port::kKvUnavailable);
    EXPECT_TRUE(left.wait_until_idle());
    EXPECT_TRUE(right.wait_until_idle());
}

TEST(HandOverTest, CorruptBlocksAreCounted) {
    TestWorker left({.engine = {.pool_tokens = 65'536, .faults = {.pull_flip = true}}});
    TestWorker right;
    TestClient client;
    const port::GenerateRequest asked = request(1, 200, 20);
    static_cast<void>(decode(right, decode_of(asked, prefill(left, asked), left.url())));
    EXPECT_THAT(client.fetch({.url = right.url("/metrics")}).body,
                HasSubstr("sluice_kv_corrupt_total 4\n"));
    const std::string left_metrics = client.fetch({.url = left.url("/metrics")}).body;
    EXPECT_THAT(left_metrics, HasSubstr("sluice_kv_holds 0\n"));
    EXPECT_THAT(left_metrics, HasSubstr("sluice_kv_holds_ended_total{why=\"released\"} 1\n"));
}

TEST(HandOverTest, ASourceThatIsGoneIsComputed) {
    TestWorker right;
    const port::GenerateRequest asked = request(1, 200, 20);
    std::optional<port::GenerateRequest> second;
    port::GenerateFrame first;
    {
        TestWorker left;
        first = prefill(left, asked);
        second = decode_of(asked, first, left.url());
    }
    const Stream rest = decode(right, *second);
    EXPECT_EQ(whole(first, rest), engine_tokens(asked));
    EXPECT_EQ(rest.frames.back().cached_tokens, 0U);
}

TEST(HandOverTest, TheNextSourceIsAskedForWhatIsMissing) {
    TestWorker broken({.engine = {.pool_tokens = 65'536, .faults = {.pull_cut = true}}});
    TestWorker good;
    TestWorker right;
    const port::GenerateRequest asked = request(1, 200, 20);
    const port::GenerateFrame first = prefill(broken, asked);
    const port::GenerateFrame again = prefill(good, asked);
    port::GenerateRequest second = decode_of(asked, first, broken.url());
    second.kv.sources.push_back(again.kv->source);
    second.kv.sources[1].url = good.url();
    const Stream rest = decode(right, second);
    EXPECT_EQ(whole(first, rest), engine_tokens(asked));
    EXPECT_EQ(rest.frames.back().cached_tokens, 200U);
    EXPECT_TRUE(broken.wait_until_idle());
    EXPECT_TRUE(good.wait_until_idle());
}

TEST(HandOverTest, AHoldEndsWithItsTimeAndThePoolStillHasItsFullBlocks) {
    TestWorker left({.kv = {.hold_time = milliseconds(1)}});
    TestWorker right;
    const port::GenerateRequest asked = request(1, 200, 20);
    const port::GenerateFrame first = prefill(left, asked);
    EXPECT_TRUE(left.wait_until_idle());
    const Stream rest = decode(right, decode_of(asked, first, left.url()));
    EXPECT_EQ(whole(first, rest), engine_tokens(asked));
    EXPECT_EQ(rest.frames.back().cached_tokens, 192U);
}

TEST(HandOverTest, KeysOfAnotherSaltAreNotAskedFor) {
    TestWorker left;
    TestWorker right;
    const port::GenerateRequest asked = request(1, 200, 20);
    const port::GenerateFrame first = prefill(left, asked);
    port::GenerateRequest second = decode_of(asked, first, left.url());
    second.kv.salt = "another";
    const Stream rest = decode(right, second);
    EXPECT_EQ(whole(first, rest), engine_tokens(asked));
    EXPECT_EQ(rest.frames.back().cached_tokens, 0U);
    EXPECT_TRUE(left.wait_until_idle());
}

TEST(HandOverTest, AClientThatLeavesDuringThePullFreesBothSides) {
    TestWorker left({.engine = {.pool_tokens = 65'536, .faults = {.pull_hang = true}}});
    TestWorker right({.kv = {.stall_time = std::chrono::hours(1)}});
    const port::GenerateRequest asked = request(1, 200, 20);
    const port::GenerateFrame first = prefill(left, asked);
    FrameReader reader(right.port(), decode_of(asked, first, left.url()));
    EXPECT_THAT(reader.head(), HasSubstr("200"));
    reader.close();
    EXPECT_TRUE(left.wait_until_idle());
    EXPECT_TRUE(right.wait_until_idle());
}

TEST(HandOverTest, AnAbortDuringThePullIsAnsweredAndFreesBothSides) {
    TestWorker left({.engine = {.pool_tokens = 65'536, .faults = {.pull_hang = true}}});
    TestWorker right({.heartbeat = milliseconds(2), .kv = {.stall_time = std::chrono::hours(1)}});
    TestClient client;
    const port::GenerateRequest asked = request(1, 200, 20);
    const port::GenerateFrame first = prefill(left, asked);
    FrameReader reader(right.port(), decode_of(asked, first, left.url()));
    // It lives, and says so.
    for (int beat = 0; beat < 3; ++beat) {
        const auto frame = reader.next();
        ASSERT_TRUE(frame.has_value());
        EXPECT_TRUE(frame->output_ids.empty());
    }
    const auto aborted =
        client.fetch(post(right.url("/abort_request"), R"({"rid":")" + asked.rid + "\"}"));
    EXPECT_EQ(aborted.status, 200);
    const Stream rest = reader.rest();
    ASSERT_FALSE(rest.frames.empty());
    EXPECT_EQ(rest.frames.back().finish_reason->type, port::FinishType::kAbort);
    EXPECT_TRUE(left.wait_until_idle());
    EXPECT_TRUE(right.wait_until_idle());
}

TEST(HandOverTest, AClientThatLeavesDuringThePrefillLeavesNoHold) {
    TestWorker worker({.engine = {.pool_tokens = 4096, .prefill_chunk = 64}});
    worker.gate.close();
    port::GenerateRequest asked = request(1, 256, 20);
    asked.phase = port::Phase::kPrefill;
    FrameReader reader(worker.port(), asked);
    ASSERT_TRUE(worker.gate.wait_until_held());
    reader.close();
    worker.gate.open();
    EXPECT_TRUE(worker.wait_until_idle());
}

TEST(HandOverTest, AStoppingWorkerWaitsForItsHoldsAndThenGivesThemUp) {
    TestWorker left;
    Signal stopped;
    static_cast<void>(prefill(left, request(1, 200, 20)));
    left.thread().call(
        [&] { left.server().stop(std::chrono::hours(1), [&stopped] { stopped.set(); }); });
    EXPECT_EQ(left.holds(), 1U);
    EXPECT_FALSE(stopped.is_set());
    left.thread().call([&] { left.server().stop(milliseconds(0), [] {}); });
    EXPECT_TRUE(stopped.wait());
    EXPECT_EQ(left.holds(), 0U);
}

std::string pull_of(const port::GenerateFrame& handover, std::vector<kv::BlockKey> keys) {
    return port::to_json(
        port::KvPullRequest{.hold = handover.kv->source.hold, .keys = std::move(keys)});
}

/// The values of a pull's answer.
std::vector<std::string> values_of(std::string_view body) {
    std::vector<std::string> values;
    while (!body.empty()) {
        const auto bytes = kv::block_value_bytes(body);
        EXPECT_TRUE(bytes.has_value() && *bytes <= body.size());
        if (!bytes || *bytes > body.size()) break;
        values.emplace_back(body.substr(0, *bytes));
        body.remove_prefix(*bytes);
    }
    return values;
}

TEST(KvPullTest, AnAnswerIsTheWantedValuesInTheirOrder) {
    TestWorker worker;
    TestClient client;
    const port::GenerateFrame first = prefill(worker, request(1, 200, 20));
    const std::vector<kv::BlockKey>& keys = first.kv->source.keys;
    const auto answer = client.fetch(
        post(worker.url("/kv/pull"), pull_of(first, {keys[2], sha256("nothing"), keys[0]})));
    EXPECT_EQ(answer.status, 200);
    const auto values = values_of(answer.body);
    ASSERT_EQ(values.size(), 2U);
    const auto third = kv::decode_block(values[0]);
    const auto one = kv::decode_block(values[1]);
    ASSERT_TRUE(third.has_value() && one.has_value());
    EXPECT_EQ(third->header.key, keys[2]);
    EXPECT_EQ(third->header.parent, keys[1]);
    EXPECT_EQ(third->header.tokens, 64U);
    EXPECT_EQ(third->header.component, "mla");
    EXPECT_EQ(one->header.key, keys[0]);
    // Pulled again and again, the same bytes: until it is released.
    EXPECT_EQ(client.fetch(post(worker.url("/kv/pull"), pull_of(first, {keys[0]}))).body,
              values[1]);
}

TEST(KvPullTest, AReleaseIsNoErrorWhateverItNames) {
    TestWorker worker;
    TestClient client;
    const port::GenerateFrame first = prefill(worker, request(1, 200, 20));
    const std::string release =
        port::to_json(port::KvReleaseRequest{.hold = first.kv->source.hold});
    for (int i = 0; i < 2; ++i)
        EXPECT_EQ(client.fetch(post(worker.url("/kv/release"), release)).status, 200);
    EXPECT_TRUE(worker.wait_until_idle());
    EXPECT_EQ(client.fetch(post(worker.url("/kv/release"), "{}")).status, 400);
    EXPECT_EQ(client.fetch(post(worker.url("/kv/pull"), "{")).status, 400);
    EXPECT_EQ(client.fetch({.url = worker.url("/kv/pull")}).status, 405);
}

TEST(KvPullTest, AReaderThatIsSlowKeepsItsBlocksAfterTheirRelease) {
    TestWorker worker;
    TestClient client;
    // 6 MB: more than is written ahead, and than a socket's buffer ever grows to (tcp_wmem: 4 MB).
    std::vector<port::GenerateFrame> held;
    std::vector<Sha256Digest> keys;
    for (std::uint32_t i = 0; i < 4; ++i) {
        held.push_back(prefill(worker, request(i, 4'000, 20)));
        const auto& more = held.back().kv->source.keys;
        keys.insert(keys.end(), more.begin(), more.end());
    }
    const std::string body = pull_of(held.front(), keys);
    RawSocket slow(worker.port(), 4096);
    ASSERT_TRUE(
        slow.send("POST /kv/pull HTTP/1.1\r\nHost: w\r\nConnection: close\r\n"
                  "Content-Length: " +
                  std::to_string(body.size()) + "\r\n\r\n" + body));
    EXPECT_THAT(slow.read_until("\r\n\r\n"), HasSubstr("200"));
    for (const port::GenerateFrame& each : held)
        client.fetch(post(worker.url("/kv/release"),
                          port::to_json(port::KvReleaseRequest{.hold = each.kv->source.hold})));
    EXPECT_EQ(worker.holds(), 0U);
    EXPECT_GT(worker.stats().blocks_held, 0U);
    slow.reset_connection();
    EXPECT_TRUE(worker.wait_until_idle());
}

TEST(HandOverTest, ManySplitsAtOnceGetTheirOwnTokens) {
    TestWorker left;
    TestWorker right;
    TestClient client;
    std::vector<port::GenerateRequest> asked;
    std::vector<std::unique_ptr<PendingCall>> prefills;
    for (std::uint32_t i = 0; i < 32; ++i) {
        asked.push_back(request(i, 5 + i * 11, 20));
        port::GenerateRequest first = asked.back();
        first.phase = port::Phase::kPrefill;
        prefills.push_back(client.start(post(left.url("/generate"), port::to_json(first))));
    }
    std::vector<port::GenerateFrame> handovers;
    std::vector<std::unique_ptr<PendingCall>> decodes;
    for (std::uint32_t i = 0; i < 32; ++i) {
        handovers.push_back(parse_stream(prefills[i]->wait().body).frames.back());
        ASSERT_TRUE(handovers.back().kv.has_value());
        decodes.push_back(
            client.start(post(right.url("/generate"),
                              port::to_json(decode_of(asked[i], handovers.back(), left.url())))));
    }
    for (std::uint32_t i = 0; i < 32; ++i) {
        const Stream rest = parse_stream(decodes[i]->wait().body);
        EXPECT_EQ(whole(handovers[i], rest), engine_tokens(asked[i])) << i;
    }
    EXPECT_TRUE(left.wait_until_idle());
    EXPECT_TRUE(right.wait_until_idle());
}

TEST(RanksTest, EachHasItsOwnPoolAndQueueAndTheSameTokens) {
    TestWorker worker({.ranks = 3});
    TestClient client;
    const port::GenerateRequest asked = request(1, 200, 20);
    for (const std::uint32_t rank : {0U, 1U, 2U}) {
        port::GenerateRequest one = asked;
        one.rid = rid(rank + 1);
        one.dp_rank = rank;
        FrameReader reader(worker.port(), one);
        const Stream stream = reader.rest();
        EXPECT_EQ(stream.tokens(), engine_tokens(asked));
        EXPECT_EQ(stream.frames.back().cached_tokens, 0U) << rank;
    }
    EXPECT_TRUE(worker.wait_until_idle());
    const auto load = port::parse_load_report(client.fetch({.url = worker.url("/ready")}).body);
    ASSERT_TRUE(load.has_value());
    ASSERT_EQ(load->ranks.size(), 3U);
    for (const port::RankLoad& rank : load->ranks) EXPECT_EQ(rank.computed_tokens, 219U);
    EXPECT_EQ(load->computed_tokens, 657U);
    const auto info =
        port::parse_server_info(client.fetch({.url = worker.url("/server_info")}).body);
    ASSERT_TRUE(info.has_value());
    EXPECT_EQ(info->dp_ranks, 3U);
    port::GenerateRequest none = asked;
    none.dp_rank = 3;
    EXPECT_EQ(client.fetch(post(worker.url("/generate"), port::to_json(none))).status, 400);
}

TEST(RanksTest, WithoutARankTheLeastLoadedIsTaken) {
    TestWorker worker({.ranks = 3});
    worker.gate.close();
    std::vector<std::unique_ptr<FrameReader>> readers;
    for (std::uint32_t i = 0; i < 6; ++i)
        readers.push_back(std::make_unique<FrameReader>(worker.port(), request(i, 10, 5)));
    for (const auto& reader : readers) EXPECT_THAT(reader->head(), HasSubstr("200"));
    worker.gate.open();
    for (const auto& reader : readers) EXPECT_EQ(reader->rest().tokens().size(), 5U);
    for (std::size_t rank = 0; rank < 3; ++rank) {
        const std::uint64_t computed = worker.thread().call(
            [&] { return worker.server().engine(rank)->stats().computed_tokens; });
        EXPECT_EQ(computed, 2U * 14U) << rank;
    }
}

TEST(RanksTest, ABlockIsPulledFromTheRankThatHasIt) {
    TestWorker left({.kv = {.hold_time = milliseconds(1)}, .ranks = 2});
    TestWorker right;
    port::GenerateRequest asked = request(1, 200, 20);
    asked.dp_rank = 1;
    const port::GenerateFrame first = prefill(left, asked);
    EXPECT_TRUE(left.wait_until_idle());
    port::GenerateRequest second = decode_of(asked, first, left.url());
    second.dp_rank.reset();
    const Stream rest = decode(right, second);
    EXPECT_EQ(whole(first, rest), engine_tokens(asked));
    EXPECT_EQ(rest.frames.back().cached_tokens, 192U);
}

}  // namespace
}  // namespace sluice::worker
