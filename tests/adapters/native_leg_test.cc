// A leg against a real worker, and against servers that do everything wrong.

#include "adapters/native_leg.h"

#include "port/port_error.h"
#include "tests/worker/support.h"

namespace sluice::adapters {
namespace {

using namespace worker::testing;  // NOLINT(google-build-using-namespace)
using net::testing::RawListener;
using net::testing::ScriptedServer;
using net::testing::TestServer;
using ::testing::HasSubstr;

/// A leg on a loop of its own, and all that became of it.
class LegRun {
public:
    enum class OnFrame : std::uint8_t { kGoOn, kDropLeg };

    LegRun(const std::string& url, const port::GenerateRequest& request, LegOptions options = {},
           OnFrame on_frame = OnFrame::kGoOn) {
        client_.thread().call([&] {
            leg_ = NativeLeg::start(client_.client(), url, request, events(on_frame), options);
        });
    }
    ~LegRun() { drop(); }

    void drop() {
        client_.thread().call([&] { leg_.reset(); });
    }
    bool wait() { return over_.wait(); }
    bool wait_for_frame() { return first_.wait(); }

    // After `wait`.
    [[nodiscard]] const Stream& stream() const { return stream_; }
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }
    [[nodiscard]] const std::optional<port::GenerateFrame>& handover() const { return handover_; }
    [[nodiscard]] Reached reached() const { return reached_; }

private:
    LegEvents events(OnFrame on_frame) {
        return {.on_frame =
                    [this, on_frame](const port::GenerateFrame& frame) {
                        stream_.frames.push_back(frame);
                        if (on_frame == OnFrame::kDropLeg) leg_.reset();
                        first_.set();
                    },
                .on_end =
                    [this] {
                        EXPECT_FALSE(over_.is_set());
                        leg_.reset();
                        over_.set();
                    },
                .on_handover =
                    [this](const port::GenerateFrame& frame) {
                        EXPECT_FALSE(over_.is_set());
                        handover_ = frame;
                        leg_.reset();
                        over_.set();
                    },
                .on_error =
                    [this](const Error& error, Reached reached) {
                        EXPECT_FALSE(over_.is_set());
                        error_ = error;
                        reached_ = reached;
                        leg_.reset();
                        over_.set();
                    }};
    }

    Stream stream_;
    std::optional<Error> error_;
    std::optional<port::GenerateFrame> handover_;
    Reached reached_ = Reached::kFrames;
    Signal first_;
    Signal over_;
    TestClient client_;
    std::unique_ptr<NativeLeg> leg_;
};

TEST(NativeLegTest, ALegBringsTheTokensOfTheEngine) {
    TestWorker worker;
    const port::GenerateRequest asked = request(1, 100, 30);
    LegRun run(worker.url(), asked);
    ASSERT_TRUE(run.wait());
    EXPECT_FALSE(run.error().has_value());
    EXPECT_EQ(run.stream().tokens(), engine_tokens(asked));
    EXPECT_TRUE(run.stream().frames.back().finish_reason.has_value());
}

TEST(NativeLegTest, ADroppedLegFreesTheWorker) {
    TestWorker worker;
    LegRun run(worker.url(), request(1, 100, 50'000));
    ASSERT_TRUE(run.wait_for_frame());
    run.drop();
    EXPECT_TRUE(worker.wait_until_idle());
    EXPECT_LT(worker.stats().steps, 50'000U);
}

TEST(NativeLegTest, ALegMayBeDroppedByItsOwnFrame) {
    TestWorker worker;
    LegRun run(worker.url(), request(1, 100, 50'000), {}, LegRun::OnFrame::kDropLeg);
    ASSERT_TRUE(run.wait_for_frame());
    EXPECT_TRUE(worker.wait_until_idle());
    EXPECT_EQ(run.stream().frames.size(), 1U);
}

TEST(NativeLegTest, ARefusalKeepsItsMessageAndPlace) {
    TestWorker worker({.engine = {.pool_tokens = 1024}});
    LegRun run(worker.url(), request(1, 1000, 100));
    ASSERT_TRUE(run.wait());
    EXPECT_EQ(run.reached(), Reached::kNobody);
    ASSERT_TRUE(run.error().has_value());
    EXPECT_EQ(run.error()->code(), ErrorCode::kOutOfRange);
    EXPECT_EQ(run.error()->place(), "sampling_params.max_new_tokens");
    EXPECT_THAT(run.error()->message(), HasSubstr("1024"));

    port::GenerateRequest strange = request(1, 3, 3);
    strange.input_ids[1] = 1'000'000;
    LegRun second(worker.url(), strange);
    ASSERT_TRUE(second.wait());
    EXPECT_EQ(second.error()->code(), ErrorCode::kInvalid);
    EXPECT_EQ(second.error()->place(), "input_ids[1]");
}

TEST(NativeLegTest, AFullQueueAndAWorkerThatIsNotReadyAreToldApart) {
    TestWorker worker({.engine = {.pool_tokens = 1024, .running_max = 1, .waiting_max = 1}});
    worker.gate.close();
    FrameReader running(worker.port(), request(1, 10, 2));
    FrameReader waiting(worker.port(), request(2, 10, 2));
    EXPECT_THAT(running.head(), HasSubstr("200"));
    EXPECT_THAT(waiting.head(), HasSubstr("200"));
    LegRun full(worker.url(), request(3, 10, 2));
    ASSERT_TRUE(full.wait());
    EXPECT_EQ(full.error()->code(), ErrorCode::kExhausted);
    LegRun twice(worker.url(), request(2, 10, 2));
    ASSERT_TRUE(twice.wait());
    EXPECT_EQ(twice.error()->code(), ErrorCode::kUnavailable);

    const auto loading = TestWorker::loading();
    LegRun early(loading->url(), request(1, 10, 2));
    ASSERT_TRUE(early.wait());
    EXPECT_EQ(early.error()->code(), ErrorCode::kUnavailable);
    EXPECT_EQ(early.reached(), Reached::kNobody);
}

TEST(NativeLegTest, AWorkerThatDiesInTheMiddleIsUnavailable) {
    TestWorker worker;
    LegRun run(worker.url(), request(1, 100, 50'000));
    ASSERT_TRUE(run.wait_for_frame());
    worker.close();
    ASSERT_TRUE(run.wait());
    ASSERT_TRUE(run.error().has_value());
    EXPECT_EQ(run.error()->code(), ErrorCode::kUnavailable);
    EXPECT_EQ(run.reached(), Reached::kFrames);
}

TEST(NativeLegTest, AWorkerThatWaitsLongInItsQueueIsNotStalled) {
    TestWorker worker(
        {.engine = {.pool_tokens = 1024, .running_max = 1}, .heartbeat = milliseconds(5)});
    worker.gate.close();
    FrameReader running(worker.port(), request(1, 10, 50));
    ASSERT_TRUE(worker.gate.wait_until_held());
    LegRun run(worker.url(), request(2, 10, 2), {.stall_time = kPatience});
    worker.gate.allow();  // Only an engine that makes steps has a heart that beats.
    ASSERT_TRUE(run.wait_for_frame());
    worker.gate.open();
    ASSERT_TRUE(run.wait());
    EXPECT_FALSE(run.error().has_value());
    EXPECT_EQ(run.stream().tokens(), engine_tokens(request(2, 10, 2)));
}

/// A frame of request 1 as an event.
std::string event(port::GenerateFrame frame, std::uint32_t number = 1) {
    frame.rid = rid(number);
    return net::sse_event(port::to_json(frame));
}

port::GenerateFrame tokens(std::vector<TokenId> ids) {
    port::GenerateFrame frame;
    frame.output_ids = std::move(ids);
    return frame;
}

port::GenerateFrame last_frame() {
    port::GenerateFrame frame = tokens({7});
    frame.finish_reason = port::FinishReason{.type = port::FinishType::kLength};
    return frame;
}

port::GenerateFrame kv_unavailable() {
    port::GenerateFrame frame;
    frame.finish_reason = port::FinishReason{.type = port::FinishType::kError,
                                             .matched = {},
                                             .message = "too much is missing",
                                             .code = std::string(port::kKvUnavailable)};
    return frame;
}

port::GenerateFrame hand_over(const std::string& url) {
    port::GenerateFrame frame = tokens({7});
    frame.kv = port::KvHandover{
        .source = {.url = url, .hold = rid(9), .keys = {sha256("a")}, .tail_tokens = 3},
        .hold_until_ms = 30'000};
    return frame;
}

const std::string kStreamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";

/// A body with its end told by Content-Length; `missing` bytes of it never come.
std::string body_of(const std::string& text, std::size_t missing = 0) {
    return kStreamHead + "Content-Length: " + std::to_string(text.size() + missing) + "\r\n\r\n" +
           text;
}

struct BadAnswer {
    std::string name;
    std::string bytes;
    ErrorCode code;
    Reached reached;
};

class BadServerTest : public ::testing::TestWithParam<BadAnswer> {};

INSTANTIATE_TEST_SUITE_P(
    Answers, BadServerTest,
    ::testing::Values(
        BadAnswer{"Nothing", "", ErrorCode::kUnavailable, Reached::kNobody},
        BadAnswer{"NoHttp", "hello\r\n\r\n", ErrorCode::kCorrupt, Reached::kNobody},
        BadAnswer{"Busy", "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy",
                  ErrorCode::kUnavailable, Reached::kNobody},
        BadAnswer{"Broken", "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", ErrorCode::kInternal,
                  Reached::kNobody},
        BadAnswer{"NoEnginePort", "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
                  ErrorCode::kUnavailable, Reached::kNobody},
        BadAnswer{"Empty", body_of(""), ErrorCode::kUnavailable, Reached::kWorker},
        BadAnswer{"Garbage", body_of("data: {]\n\n"), ErrorCode::kCorrupt, Reached::kWorker},
        BadAnswer{"GarbageLater", body_of(event(tokens({5})) + "data: {}\n\n"), ErrorCode::kCorrupt,
                  Reached::kFrames},
        BadAnswer{"CutOff", body_of(event(tokens({5})), 100), ErrorCode::kUnavailable,
                  Reached::kFrames},
        BadAnswer{"CutInAnEvent", body_of(event(tokens({5})) + "data: {\"output", 100),
                  ErrorCode::kUnavailable, Reached::kFrames},
        BadAnswer{"NoEnd", body_of(event(tokens({5}))), ErrorCode::kUnavailable, Reached::kFrames},
        BadAnswer{"DoneWithoutAReason", body_of(event(tokens({5})) + "data: [DONE]\n\n"),
                  ErrorCode::kUnavailable, Reached::kFrames},
        BadAnswer{"AnothersFrame", body_of(event(tokens({5}), 2)), ErrorCode::kCorrupt,
                  Reached::kWorker},
        BadAnswer{"KvUnavailable", body_of(event(kv_unavailable())), ErrorCode::kNotFound,
                  Reached::kWorker},
        BadAnswer{"KvUnavailableAtOnce",
                  "HTTP/1.1 503 No\r\nContent-Length: 53\r\n\r\n"
                  R"({"error":{"message":"gone","code":"kv_unavailable"} })",
                  ErrorCode::kNotFound, Reached::kNobody},
        BadAnswer{"AFrameAfterTheEnd", body_of(event(last_frame()) + event(tokens({5}))),
                  ErrorCode::kCorrupt, Reached::kFrames}),
    [](const auto& info) { return info.param.name; });

TEST_P(BadServerTest, IsAnErrorOfItsKind) {
    ScriptedServer server({GetParam().bytes});
    LegRun run(server.url(""), request(1, 10, 5));
    ASSERT_TRUE(run.wait());
    ASSERT_TRUE(run.error().has_value());
    EXPECT_EQ(run.error()->code(), GetParam().code) << run.error()->message();
    EXPECT_EQ(run.reached(), GetParam().reached);
}

TEST(NativeLegTest, AStreamThatIsCutAfterItsLastFrameIsComplete) {
    ScriptedServer server({body_of(event(tokens({5})) + event(last_frame()), 10)});
    LegRun run(server.url(""), request(1, 10, 5));
    ASSERT_TRUE(run.wait());
    EXPECT_FALSE(run.error().has_value());
    EXPECT_EQ(run.stream().tokens(), (std::vector<TokenId>{5, 7}));
}

TEST(NativeLegTest, AHandOverEndsTheLegAtItsFrame) {
    ScriptedServer server({body_of(event(tokens({})) + event(hand_over("")), 10),
                           body_of(event(hand_over("http://other:1")))});
    LegRun run(server.url(""), request(1, 10, 5));
    ASSERT_TRUE(run.wait());
    EXPECT_FALSE(run.error().has_value());
    ASSERT_TRUE(run.handover().has_value());
    EXPECT_EQ(run.handover()->output_ids, std::vector<TokenId>{7});
    EXPECT_EQ(run.handover()->kv->source.url, server.url(""));
    EXPECT_EQ(run.stream().frames.size(), 1U);

    LegRun named(server.url(""), request(1, 10, 5));
    ASSERT_TRUE(named.wait());
    EXPECT_EQ(named.handover()->kv->source.url, "http://other:1");
}

TEST(NativeLegTest, NobodyThereIsUnavailable) {
    std::string url;
    {
        const RawListener gone;
        url = gone.url("");
    }
    LegRun run(url, request(1, 10, 5));
    ASSERT_TRUE(run.wait());
    EXPECT_EQ(run.error()->code(), ErrorCode::kUnavailable);
    EXPECT_EQ(run.reached(), Reached::kNobody);
}

TEST(NativeLegTest, SilenceIsATimeout) {
    const LegOptions impatient{.head_time = milliseconds(20), .stall_time = milliseconds(20)};
    const RawListener mute;  // Connections wait in its backlog for ever.
    LegRun before(mute.url(""), request(1, 10, 5), impatient);
    ASSERT_TRUE(before.wait());
    EXPECT_EQ(before.error()->code(), ErrorCode::kTimeout);
    EXPECT_EQ(before.reached(), Reached::kNobody);

    std::shared_ptr<net::HttpExchange> kept;
    TestServer server([&kept](const std::shared_ptr<net::HttpExchange>& exchange) {
        kept = exchange;
        exchange->begin_stream(200, {});
        exchange->write(event(tokens({5})));
    });
    LegRun after(server.url(""), request(1, 10, 5), {.stall_time = milliseconds(20)});
    ASSERT_TRUE(after.wait());
    EXPECT_EQ(after.error()->code(), ErrorCode::kTimeout);
    EXPECT_EQ(after.reached(), Reached::kFrames);
    server.thread().call([&] { kept = nullptr; });
}

TEST(NativeLegTest, NoiseWithoutFramesIsATimeoutToo) {
    std::shared_ptr<net::HttpExchange> kept;
    net::Timer timer;
    std::function<void()> chatter;
    TestServer server([&](const std::shared_ptr<net::HttpExchange>& exchange) {
        kept = exchange;
        exchange->begin_stream(200, {});
        chatter();
    });
    chatter = [&] {
        kept->write(net::sse_comment("still here"));
        timer = server.thread().loop().call_after(milliseconds(1), chatter);
    };
    LegRun run(server.url(""), request(1, 10, 5), {.stall_time = milliseconds(100)});
    ASSERT_TRUE(run.wait());
    EXPECT_EQ(run.error()->code(), ErrorCode::kTimeout);
    server.thread().call([&] {
        timer.cancel();
        kept = nullptr;
    });
}

}  // namespace
}  // namespace sluice::adapters
