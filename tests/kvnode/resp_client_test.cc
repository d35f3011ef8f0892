#include "kvnode/resp_client.h"

#include "tests/kvnode/fake_node.h"
#include "tests/kvnode/support.h"

namespace sluice::kvnode {
namespace {

using namespace std::chrono_literals;
using testing::after;
using testing::FakeNode;
using testing::Signal;
using testing::soon;

using Fault = FakeNode::Fault;
using Reply = Result<kv::RespReply>;

class RespClientTest : public ::testing::Test {
protected:
    ~RespClientTest() override {
        loop.call([&] { client.reset(); });
    }

    void connect(const std::string& url, RespClient::Options options = {}) {
        options.address = *parse_store_url(url);
        loop.call([&] { client = RespClient::make(loop.loop(), std::move(options)); });
    }

    /// Asks for all of them at once; the answers in the order in which they came.
    std::vector<Reply> ask_all(const std::vector<std::vector<std::string>>& requests,
                               Deadline deadline = soon()) {
        std::vector<Reply> replies;
        Signal done;
        loop.call([&] {
            for (const auto& words : requests) {
                client->call({.words = words}, deadline, [&](Reply reply) {
                    replies.push_back(std::move(reply));
                    if (replies.size() == requests.size()) done.set();
                });
            }
            EXPECT_TRUE(replies.empty()) << "called from inside the call";
        });
        EXPECT_TRUE(done.wait());
        return replies;
    }
    Reply ask(const std::vector<std::string>& words, Deadline deadline = soon()) {
        return ask_all({words}, deadline).front();
    }
    bool wait_until_up(bool wanted) {
        const Deadline end = soon();
        while (std::chrono::steady_clock::now() < end) {
            if (loop.call([&] { return client->up(); }) == wanted) return true;
            std::this_thread::yield();
        }
        return false;
    }

    FakeNode node;
    testing::LoopThread loop;
    std::shared_ptr<RespClient> client;
};

TEST_F(RespClientTest, PipelinedRequestsAreAnsweredInTheirOrder) {
    for (int i = 0; i < 500; ++i) node.put(std::to_string(i), "value " + std::to_string(i));
    connect(node.url(), {.window = 10});
    std::vector<std::vector<std::string>> requests;
    for (int i = 0; i < 500; ++i) requests.push_back({"GET", std::to_string(i)});
    const auto replies = ask_all(requests);
    for (int i = 0; i < 500; ++i) EXPECT_EQ(replies[i]->text.view(), "value " + std::to_string(i));
    EXPECT_EQ(node.connections(), 1U);
    EXPECT_EQ(loop.call([&] { return client->server(); }), "fake");
}

TEST_F(RespClientTest, ALargeValueGoesAndComesBack) {
    connect(node.url());
    std::string value(5'000'000, 'x');
    for (std::size_t i = 0; i < value.size(); i += 1000) value[i] = static_cast<char>(i / 1000);
    Signal done;
    loop.call([&] {
        client->call({.words = {"SET", "a", "NX"}, .value = kv::SharedBytes::own(value)}, soon(),
                     [&](const Reply& reply) {
                         EXPECT_EQ(reply->text.view(), "OK");
                         done.set();
                     });
    });
    ASSERT_TRUE(done.wait());
    EXPECT_EQ(ask({"GET", "a"})->text.view(), value);
}

TEST_F(RespClientTest, GetsInWithThePasswordAndNotWithAnother) {
    FakeNode guarded("secret");
    const std::string place = "127.0.0.1:" + std::to_string(guarded.port());
    connect("redis://:secret@" + place);
    EXPECT_EQ(ask({"EXISTS", "a"})->integer, 0);
    connect("redis://:wrong@" + place);
    const Reply refused = ask({"EXISTS", "a"});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code(), ErrorCode::kUnavailable);
    EXPECT_EQ(refused.error().message().find("wrong"), std::string::npos);
    EXPECT_EQ(guarded.count("EXISTS"), 1U);
}

TEST_F(RespClientTest, AnErrorOfTheServerIsAReply) {
    connect(node.url());
    const Reply reply = ask({"NONSENSE", "a"});
    ASSERT_TRUE(reply.has_value());
    EXPECT_TRUE(reply->is_error());
}

TEST_F(RespClientTest, AnAnswerThatHangsEndsItsConnectionAndTheOthersAreAskedAgain) {
    node.put("a", std::string(1000, 'x'));
    connect(node.url(), {.probe_pause = 1ms});
    EXPECT_EQ(ask({"EXISTS", "a"})->integer, 1);
    node.fault = Fault::kHang;
    Signal patient;
    loop.call([&] {
        // Behind the one that hangs; its own time is not over.
        client->call({.words = {"GET", "a"}}, after(300ms), [&](const Reply& reply) {
            EXPECT_EQ(reply.error().code(), ErrorCode::kTimeout);
            node.fault = Fault::kNone;
        });
        client->call({.words = {"GET", "a"}}, soon(), [&](const Reply& reply) {
            EXPECT_TRUE(reply.has_value() && reply->text.view() == std::string(1000, 'x'));
            patient.set();
        });
    });
    EXPECT_TRUE(patient.wait());
    EXPECT_EQ(node.connections(), 2U);
}

TEST_F(RespClientTest, WhatBreaksTwiceFails) {
    node.put("a", std::string(1000, 'x'));
    connect(node.url(), {.probe_pause = 1ms});
    EXPECT_EQ(ask({"EXISTS", "a"})->integer, 1);
    node.fault = Fault::kCut;
    const Reply reply = ask({"GET", "a"});
    ASSERT_FALSE(reply.has_value());
    EXPECT_EQ(reply.error().code(), ErrorCode::kUnavailable);
    EXPECT_LE(node.count("GET"), 2U);
    node.fault = Fault::kNone;
    EXPECT_TRUE(wait_until_up(true));
    EXPECT_TRUE(ask({"GET", "a"}).has_value());
}

TEST_F(RespClientTest, WhatIsNoRespEndsTheConnection) {
    node.put("a", "x");
    connect(node.url(), {.probe_pause = 1ms});
    EXPECT_EQ(ask({"EXISTS", "a"})->integer, 1);
    node.fault = Fault::kGarbage;
    EXPECT_FALSE(ask({"GET", "a"}).has_value());
}

TEST_F(RespClientTest, ANodeThatNeverAnswersIsDownAndThenAMissAtOnce) {
    node.fault = Fault::kSilent;
    connect(node.url(), {.connect_time = 50ms, .probe_pause = 1ms});
    const Reply first = ask({"GET", "a"});
    ASSERT_FALSE(first.has_value());
    EXPECT_EQ(first.error().code(), ErrorCode::kTimeout);
    EXPECT_FALSE(loop.call([&] { return client->up(); }));
    // Its deadline is far, and the answer comes all the same.
    EXPECT_EQ(ask({"GET", "a"}).error().code(), ErrorCode::kUnavailable);
    node.fault = Fault::kNone;
    EXPECT_TRUE(wait_until_up(true));
    EXPECT_TRUE(ask({"EXISTS", "a"}).has_value());
}

TEST_F(RespClientTest, ADeadNodeIsTriedOnceAPause) {
    const std::string url = node.url();
    node.stop();
    connect(url, {.probe_pause = std::chrono::hours(1)});
    EXPECT_FALSE(ask({"GET", "a"}).has_value());
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(ask({"GET", "a"}).has_value());
    EXPECT_EQ(loop.call([&] { return client->tries(); }), 1U);
}

TEST_F(RespClientTest, ANodeThatIsKilledFailsWhatWasUnderWay) {
    node.put("a", std::string(1000, 'x'));
    connect(node.url());
    EXPECT_EQ(ask({"EXISTS", "a"})->integer, 1);
    node.fault = Fault::kHang;
    Signal ended;
    loop.call([&] {
        client->call({.words = {"GET", "a"}}, soon(), [&](const Reply& reply) {
            EXPECT_FALSE(reply.has_value());
            ended.set();
        });
    });
    while (node.count("GET") == 0) std::this_thread::yield();
    node.stop();
    EXPECT_TRUE(ended.wait());
    EXPECT_FALSE(loop.call([&] { return client->up(); }));
}

TEST_F(RespClientTest, ADeadlineThatIsOverAsksNobodyAndCostsNoConnection) {
    connect(node.url());
    EXPECT_TRUE(ask({"EXISTS", "a"}).has_value());
    const Reply late = ask({"EXISTS", "b"}, std::chrono::steady_clock::now());
    ASSERT_FALSE(late.has_value());
    EXPECT_EQ(late.error().code(), ErrorCode::kTimeout);
    EXPECT_TRUE(ask({"EXISTS", "c"}).has_value());
    EXPECT_EQ(node.connections(), 1U);
    EXPECT_EQ(node.count("EXISTS"), 2U);
}

TEST_F(RespClientTest, WhatNobodyWantsAnyMoreIsNotAskedFor) {
    connect(node.url(), {.window = 1});
    auto wanted = std::make_shared<const bool>(true);
    Signal last;
    loop.call([&] {
        client->call({.words = {"EXISTS", "first"}}, soon(), [&](const Reply&) { wanted.reset(); });
        client->call(
            {.words = {"EXISTS", "unwanted"}}, soon(), [](const Reply&) { FAIL(); },
            std::weak_ptr<const void>(wanted));
        client->call({.words = {"EXISTS", "last"}}, soon(), [&](const Reply&) { last.set(); });
    });
    EXPECT_TRUE(last.wait());
    EXPECT_EQ(node.count("EXISTS"), 2U);
}

TEST_F(RespClientTest, TooMuchThatWaitsIsRefused) {
    node.fault = Fault::kSilent;
    connect(node.url(), {.requests_max = 3, .value_bytes_max = 1000});
    std::vector<ErrorCode> refused;
    Signal done;
    loop.call([&] {
        const auto count = [&](const Reply& reply) {
            refused.push_back(reply.error().code());
            if (refused.size() == 2) done.set();
        };
        for (int i = 0; i < 2; ++i) client->call({.words = {"EXISTS", "a"}}, soon(), count);
        client->call({.words = {"SET", "a"}, .value = kv::SharedBytes::own(std::string(1001, 'x'))},
                     soon(), count);
        client->call({.words = {"EXISTS", "a"}}, soon(), count);
        client->call({.words = {"EXISTS", "a"}}, soon(), count);
    });
    ASSERT_TRUE(done.wait());
    EXPECT_EQ(refused, std::vector(2, ErrorCode::kExhausted));
    loop.call([&] { client.reset(); });  // Calls nobody.
    EXPECT_EQ(refused.size(), 2U);
}

TEST_F(RespClientTest, ItMayEndInsideOfItsOwnCallback) {
    connect(node.url());
    Signal ended;
    loop.call([&] {
        client->call({.words = {"EXISTS", "a"}}, soon(), [&](const Reply&) {
            client->close();
            client.reset();
            ended.set();
        });
        client->call({.words = {"EXISTS", "b"}}, soon(), [](const Reply&) { FAIL(); });
    });
    EXPECT_TRUE(ended.wait());
}

}  // namespace
}  // namespace sluice::kvnode
