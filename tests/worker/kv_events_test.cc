// GET /kv_events over real sockets: a reader knows what a pool has, however it falls behind.

#include "port/kv_events.h"

#include <future>
#include <set>

#include "kvnode/kv_event_query.h"
#include "tests/worker/support.h"
#include "worker/block_places.h"

namespace sluice::worker {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

/// Asks, and keeps what it hears.
class Reader {
public:
    explicit Reader(std::string url) : url_(std::move(url)) {}

    port::KvEventPage ask(std::uint32_t wait_ms = 0) {
        query_.wait_ms = wait_ms;
        const auto answer = client_.fetch({.url = url_ + query_.target()});
        EXPECT_EQ(answer.status, 200) << answer.body;
        const auto page = port::parse_kv_event_page(answer.body);
        EXPECT_TRUE(page.has_value()) << answer.body;
        if (!page) return {};
        take(*page);
        query_ = query_.after(*page);
        return *page;
    }
    /// Until nothing is new.
    void catch_up() {
        while (true) {
            const port::KvEventPage page = ask();
            if (page.events.empty() && !page.page) return;
        }
    }
    [[nodiscard]] const std::set<kv::BlockKey>& keys() const { return keys_; }
    [[nodiscard]] port::KvEventQuery& query() { return query_; }

private:
    void take(const port::KvEventPage& page) {
        if (page.reset) keys_.clear();
        for (const port::KvEvent& event : page.events) {
            for (const kv::BlockKey& key : event.keys) {
                if (event.type == port::KvEventType::kStored) keys_.insert(key);
                if (event.type == port::KvEventType::kRemoved) keys_.erase(key);
            }
        }
    }

    std::string url_;
    TestClient client_;
    port::KvEventQuery query_;
    std::set<kv::BlockKey> keys_;
};

std::set<kv::BlockKey> keys_of(TestWorker& of, const std::vector<TokenId>& tokens) {
    const kv::BlockKeyRoot root =
        of.thread().call([&] { return of.server().engine()->key_root(); });
    const auto keys = kv::chain_keys(kv::root_key(root), tokens, 64);
    return {keys.begin(), keys.end()};
}

void generate(TestWorker& worker, const port::GenerateRequest& request) {
    FrameReader reader(worker.port(), request);
    EXPECT_FALSE(reader.rest().frames.empty());
    EXPECT_TRUE(worker.wait_until_idle());
}

TEST(KvEventsTest, AReaderLearnsWhatIsStored) {
    TestWorker worker;
    Reader reader(worker.url());
    const port::KvEventPage first = reader.ask();
    EXPECT_TRUE(first.reset);
    EXPECT_TRUE(first.events.empty());
    const port::GenerateRequest asked = request(1, 200, 2);
    generate(worker, asked);
    const port::KvEventPage second = reader.ask();
    EXPECT_FALSE(second.reset);
    ASSERT_EQ(second.events.size(), 1U);
    EXPECT_FALSE(second.events[0].parent.has_value());
    EXPECT_EQ(second.events[0].keys.size(), 3U);
    EXPECT_EQ(second.next, 3U);
    EXPECT_EQ(reader.keys(), keys_of(worker, asked.input_ids));
    EXPECT_TRUE(reader.ask().events.empty());
}

TEST(KvEventsTest, AQuestionWaitsForNews) {
    TestWorker worker;
    Reader reader(worker.url());
    static_cast<void>(reader.ask());
    TestClient client;
    port::KvEventQuery query = reader.query();
    query.wait_ms = 30'000;
    const auto call = client.start({.url = worker.url(query.target())});
    generate(worker, request(1, 200, 2));
    const auto page = port::parse_kv_event_page(call->wait().body);
    ASSERT_TRUE(page.has_value());
    EXPECT_FALSE(page->events.empty());
    // Without any, the patience ends.
    static_cast<void>(reader.ask());
    EXPECT_TRUE(reader.ask(1).events.empty());
}

TEST(KvEventsTest, AReaderThatLeavesWhileItWaitsIsForgotten) {
    TestWorker worker;
    Reader reader(worker.url());
    static_cast<void>(reader.ask());
    port::KvEventQuery query = reader.query();
    query.wait_ms = 30'000;
    {
        const RawSocket socket(worker.port());
        socket.send("GET " + query.target() + " HTTP/1.1\r\nHost: w\r\n\r\n");
    }
    generate(worker, request(1, 200, 2));
    reader.catch_up();
    EXPECT_EQ(reader.keys().size(), 3U);
}

TEST(KvEventsTest, AnotherEpochStartsFromASnapshot) {
    TestWorker worker;
    const port::GenerateRequest asked = request(1, 200, 2);
    generate(worker, asked);
    Reader reader(worker.url());
    reader.query().epoch = "abcdef";
    reader.query().from = 2;
    const port::KvEventPage page = reader.ask();
    EXPECT_TRUE(page.reset);
    EXPECT_EQ(reader.keys(), keys_of(worker, asked.input_ids));
    TestWorker restarted;
    Reader other(restarted.url());
    EXPECT_NE(other.ask().epoch, page.epoch);
}

TEST(KvEventsTest, ALostDeletionHeals) {
    // A pool of 16 blocks, in which prefixes push each other out; the log keeps 1,024 events.
    TestWorker worker({.engine = {.pool_tokens = 1'024, .running_max = 4}});
    Reader steady(worker.url());
    Reader late(worker.url());
    static_cast<void>(late.ask());
    for (std::uint32_t i = 0; i < 60; ++i) {
        generate(worker, request(i, 700, 2));
        steady.catch_up();
    }
    const port::KvEventPage page = late.ask();
    EXPECT_TRUE(page.reset) << "it was too far behind";
    late.catch_up();
    EXPECT_EQ(late.keys(), steady.keys());
    EXPECT_LE(late.keys().size(), 16U);
    EXPECT_FALSE(late.keys().empty());
}

TEST(KvEventsTest, ALongSnapshotComesInPagesWhileThePoolGoesOn) {
    kvnode::KvEventLog log(64);
    BlockPlaces places(log);
    auto engine =
        engine::Engine::create(tiny_model(), {.pool_tokens = 4'096, .block_observer = &places});
    ASSERT_TRUE(engine.has_value());
    (*engine)->start();
    std::unique_ptr<kvnode::KvEventFeed> feed;
    net::testing::TestServer server([&](const std::shared_ptr<net::HttpExchange>& exchange) {
        const auto query = kvnode::parse_kv_event_query(exchange->request().query);
        feed->answer(*query, exchange);
    });
    server.thread().call([&] {
        feed = std::make_unique<kvnode::KvEventFeed>(
            server.thread().loop(),
            [&places](const std::function<void(kvnode::KvEventFeed::Snapshot)>& done) {
                done(places.snapshot());
            },
            log, 5);
    });
    const auto generate = [&](std::uint32_t number, std::size_t prompt) {
        std::promise<void> over;
        engine::Request plain{.id = std::to_string(number),
                              .input_ids = request(number, prompt, 1).input_ids};
        plain.sampling.max_new_tokens = 1;
        ASSERT_TRUE((*engine)->submit(plain, [&over](const engine::Output& output) {
            if (output.finish) over.set_value();
        }));
        over.get_future().wait();
    };
    generate(0, 20 * 64);
    Reader reader(server.url(""));
    port::KvEventPage page = reader.ask();
    EXPECT_TRUE(page.reset);
    std::size_t pages = 1;
    for (; page.page; ++pages) {
        // Room for 64 blocks: each prompt pushes out some of what was told.
        generate(static_cast<std::uint32_t>(pages), 8 * 64);
        page = reader.ask();
        EXPECT_FALSE(page.reset);
    }
    EXPECT_EQ(pages, 4U);
    reader.catch_up();
    std::set<kv::BlockKey> there;
    std::promise<void> looked;
    (*engine)->with_blocks([&](engine::BlockDesk& desk) {
        for (const engine::NamedBlock& block : desk.named_blocks()) there.insert(block.key);
        looked.set_value();
    });
    looked.get_future().wait();
    EXPECT_EQ(reader.keys(), there);
    server.thread().call([&] { feed.reset(); });
    (*engine)->stop();
}

TEST(KvEventsTest, RanksTellTheirOwn) {
    TestWorker worker({.ranks = 2});
    port::GenerateRequest asked = request(1, 200, 2);
    asked.dp_rank = 1;
    generate(worker, asked);
    Reader reader(worker.url());
    reader.catch_up();
    EXPECT_TRUE(reader.keys().empty());
    Reader second(worker.url());
    second.query().rank = 1;
    second.catch_up();
    EXPECT_EQ(second.keys().size(), 3U);
}

TEST(KvEventsTest, AWrongQuestionIsRefused) {
    TestWorker worker;
    TestClient client;
    EXPECT_EQ(client.fetch({.url = worker.url("/kv_events?from=x")}).status, 400);
    EXPECT_EQ(client.fetch({.url = worker.url("/kv_events?rank=1")}).status, 400);
    EXPECT_EQ(client.fetch({.url = worker.url("/kv_events?epoch=%")}).status, 400);
    const auto loading = TestWorker::loading();
    EXPECT_EQ(client.fetch({.url = loading->url("/kv_events")}).status, 503);
}

}  // namespace
}  // namespace sluice::worker
