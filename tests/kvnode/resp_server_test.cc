// A cache node as its clients see it: every answer byte by byte, over real sockets.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "kv/block_name.h"
#include "tests/kvnode/support.h"
#include "tests/kvnode/test_node.h"

namespace sluice::kvnode {
namespace {

using namespace sluice::kvnode::testing;
using ::testing::AllOf;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::StartsWith;

constexpr std::size_t kMiB = 1024UL * 1024;
const std::string kNull = "$-1\r\n";
const std::string kOk = "+OK\r\n";

struct Step {
    Words words;
    std::string answer;
};

void play(TestClient& client, const std::vector<Step>& steps) {
    for (const Step& step : steps) {
        EXPECT_EQ(client.ask(step.words), step.answer) << ::testing::PrintToString(step.words);
    }
}

std::string name_of(const Chain& chain, std::size_t index) {
    return kv::to_wire(
        {.tenant = chain.tenant, .retention = chain.retention, .key = chain.keys[index]});
}

TEST(RespServerTest, AnswersAsRedisDoes) {
    const TestNode node;
    TestClient client(node);
    play(client, {
                     {{"PING"}, "+PONG\r\n"},
                     {{"ping", "hello"}, bulk("hello")},
                     {{"GET", "a"}, kNull},
                     {{"SET", "a", "value"}, kOk},
                     {{"GET", "a"}, bulk("value")},
                     {{"STRLEN", "a"}, ":5\r\n"},
                     {{"STRLEN", "none"}, ":0\r\n"},
                     {{"GETRANGE", "a", "1", "-2"}, bulk("alu")},
                     {{"GETRANGE", "a", "-100", "100"}, bulk("value")},
                     {{"GETRANGE", "a", "4", "2"}, bulk("")},
                     {{"GETRANGE", "none", "0", "5"}, bulk("")},
                     {{"MSET", "b", "1", "c", "2"}, kOk},
                     {{"MGET", "b", "none", "c"}, "*3\r\n" + bulk("1") + kNull + bulk("2")},
                     {{"EXISTS", "a", "a", "none"}, ":2\r\n"},
                     {{"KV.LONGEST", "a", "b", "none", "c"}, ":2\r\n"},
                     {{"DBSIZE"}, ":3\r\n"},
                     {{"TYPE", "a"}, "+string\r\n"},
                     {{"DEL", "b", "none"}, ":1\r\n"},
                     {{"UNLINK", "c"}, ":1\r\n"},
                     {{"SELECT", "0"}, kOk},
                     {{"SELECT", "1"}, "-ERR DB index is out of range\r\n"},
                     {{"CLIENT", "GETNAME"}, kNull},
                     {{"CLIENT", "SETNAME", "me"}, kOk},
                     {{"CLIENT", "GETNAME"}, bulk("me")},
                     {{"CONFIG", "GET", "appendonly"}, "*2\r\n" + bulk("appendonly") + bulk("no")},
                     {{"COMMAND", "INFO", "nothing"}, "*1\r\n*-1\r\n"},
                     {{"GET"}, "-ERR wrong number of arguments for 'get' command\r\n"},
                     {{"NOTHING", "x"},
                      "-ERR unknown command 'NOTHING', with args beginning with: 'x' \r\n"},
                     {{"AUTH", "x"},
                      "-ERR AUTH <password> called without any password configured for the "
                      "default user. Are you sure your configuration is correct?\r\n"},
                 });
    EXPECT_THAT(client.ask({"INFO"}), AllOf(HasSubstr("keyspace_hits:"), HasSubstr("maxmemory:"),
                                            HasSubstr("\r\nloading:0\r\n")));
    EXPECT_EQ(client.ask({"info", "Cluster"}), bulk("# Cluster\r\ncluster_enabled:0\r\n"));
    EXPECT_EQ(client.ask({"INFO", "nothing"}), bulk(""));
    EXPECT_THAT(client.ask({"CLIENT", "LIST"}), HasSubstr("name=me"));
}

TEST(RespServerTest, ABlockWithoutRoomIsNoWrongBlock) {
    const TestNode node({.dram = kMiB});
    TestClient client(node);
    const ChainPtr chain = make_chain("text", 1);
    const std::string large = value_of(*chain, 0, std::string(2 * kMiB, 'p'));
    EXPECT_EQ(client.ask({"SET", name_of(*chain, 0), large}),
              "-OOM no room for a block of this size\r\n");
}

TEST(RespServerTest, ValuesAreChangedAsInRedis) {
    const TestNode node;
    TestClient client(node);
    const std::string no_number = "-ERR value is not an integer or out of range\r\n";
    const std::string overflow = "-ERR increment or decrement would overflow\r\n";
    play(client, {
                     {{"INCR", "n"}, ":1\r\n"},
                     {{"INCRBY", "n", "41"}, ":42\r\n"},
                     {{"DECR", "n"}, ":41\r\n"},
                     {{"DECRBY", "n", "-1"}, ":42\r\n"},
                     {{"GET", "n"}, bulk("42")},
                     {{"INCRBY", "n", "x"}, no_number},
                     {{"EXPIRE", "n", "100"}, ":1\r\n"},
                     {{"INCR", "n"}, ":43\r\n"},
                     {{"TTL", "n"}, ":100\r\n"},
                     {{"APPEND", "n", "x"}, ":3\r\n"},
                     {{"INCR", "n"}, no_number},
                     {{"APPEND", "new", "text"}, ":4\r\n"},
                     {{"GET", "new"}, bulk("text")},
                     {{"SET", "n", "9223372036854775807"}, kOk},
                     {{"INCR", "n"}, overflow},
                     {{"DECRBY", "n", "-9223372036854775808"}, "-ERR decrement would overflow\r\n"},
                 });
    const ChainPtr chain = make_chain("text", 1);
    ASSERT_EQ(client.ask({"SET", name_of(*chain, 0), value_of(*chain, 0)}), kOk);
    EXPECT_EQ(client.ask({"APPEND", name_of(*chain, 0), "x"}), "-ERR a block can't be changed\r\n");
}

TEST(RespServerTest, WhatOnlyTheSsdHasIsChangedToo) {
    const kv::testing::Folder folder;
    {
        TestNode node({.ssd_dir = folder.path()});
        TestClient client(node);
        ASSERT_EQ(client.ask({"SET", "n", "7"}), kOk);
        node.sync();
    }
    const TestNode node({.ssd_dir = folder.path()});
    TestClient client(node);
    EXPECT_EQ(client.ask({"INCR", "n"}), ":8\r\n");
    EXPECT_EQ(client.ask({"FLUSHALL"}), kOk);
    EXPECT_EQ(client.ask({"GET", "n"}), kNull);
}

TEST(RespServerTest, LivesEndAsRedisSays) {
    const TestNode node;
    TestClient client(node);
    play(client, {
                     {{"SET", "a", "1"}, kOk},
                     {{"EXPIRE", "a", "10", "XX"}, ":0\r\n"},
                     {{"EXPIRE", "a", "10", "GT"}, ":0\r\n"},
                     {{"EXPIRE", "a", "10", "LT"}, ":1\r\n"},
                     {{"EXPIRE", "a", "5", "GT"}, ":0\r\n"},
                     {{"EXPIRE", "a", "20", "NX"}, ":0\r\n"},
                     {{"EXPIRE", "a", "20", "xx", "gt"}, ":1\r\n"},
                     {{"TTL", "a"}, ":20\r\n"},
                     {{"PEXPIRE", "a", "30000", "LT"}, ":0\r\n"},
                     {{"PERSIST", "a"}, ":1\r\n"},
                     {{"PERSIST", "a"}, ":0\r\n"},
                     {{"PERSIST", "none"}, ":0\r\n"},
                     {{"TTL", "a"}, ":-1\r\n"},
                     {{"EXPIRE", "a", "10", "NX", "XX"},
                      "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n"},
                     {{"EXPIRE", "a", "10", "GT", "LT"},
                      "-ERR GT and LT options at the same time are not compatible\r\n"},
                     {{"EXPIRE", "a", "10", "FOO"}, "-ERR Unsupported option FOO\r\n"},
                 });
}

TEST(RespServerTest, EndsAreCounted) {
    const TestNode node;
    TestClient client(node);
    const ChainPtr chain = make_chain("text", 3);
    const auto keyspace = [&](int keys, int expires) {
        return bulk(
            fmt::format("# Keyspace\r\ndb0:keys={},expires={},avg_ttl=0\r\n", keys, expires));
    };
    for (std::size_t i = 0; i < 3; ++i)
        ASSERT_EQ(client.ask({"SET", name_of(*chain, i), value_of(*chain, i)}), kOk);
    play(client, {
                     {{"MSET", "a", "1", "b", "1"}, kOk},
                     {{"INFO", "keyspace"}, keyspace(5, 3)},
                     {{"EXPIRE", "a", "10"}, ":1\r\n"},
                     {{"INFO", "keyspace"}, keyspace(5, 4)},
                     {{"PERSIST", "a"}, ":1\r\n"},
                     {{"DEL", name_of(*chain, 0)}, ":1\r\n"},
                     {{"INFO", "keyspace"}, keyspace(4, 2)},
                     {{"SET", name_of(*chain, 0), value_of(*chain, 0)}, kOk},
                     {{"SET", "b", "2", "EX", "10"}, kOk},
                     {{"INFO", "keyspace"}, keyspace(5, 4)},
                     {{"FLUSHDB", "ASYNC"}, kOk},
                     {{"INFO", "keyspace"}, keyspace(0, 0)},
                     {{"FLUSHDB", "NOW"}, "-ERR syntax error\r\n"},
                 });
}

TEST(RespServerTest, KeysAreThoseThatFit) {
    const kv::testing::Folder folder;
    TestNode node({.ssd_dir = folder.path()});
    TestClient client(node);
    play(client, {
                     {{"MSET", "ab", "1", "ac", "2", "b", "3"}, kOk},
                     {{"KEYS", "a?"}, "*2\r\n" + bulk("ab") + bulk("ac")},
                     {{"KEYS", "*"}, "*3\r\n" + bulk("ab") + bulk("ac") + bulk("b")},
                     {{"KEYS", "none"}, "*0\r\n"},
                 });
    node.sync();
    EXPECT_EQ(client.ask({"KEYS", "*"}), "*3\r\n" + bulk("ab") + bulk("ac") + bulk("b"));
}

TEST(RespServerTest, KeysAreForSmallNodes) {
    const TestNode node({.dram = 256 * 1024 * 1024});
    TestClient client(node);
    int next = 0;
    for (int i = 0; i < 101; ++i) {
        Words words{"MSET"};
        for (int pair = 0; pair < 1'000; ++pair) {
            words.push_back(std::to_string(next++));
            words.emplace_back("v");
        }
        ASSERT_EQ(client.ask(words), kOk);
    }
    EXPECT_EQ(client.ask({"KEYS", "none"}),
              "-OOM too many names are here; SCAN goes through all of them\r\n");
}

TEST(RespServerTest, WithoutAPasswordTheDefaultUserMaySayAny) {
    const TestNode node;
    TestClient client(node);
    const std::string wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    EXPECT_EQ(client.ask({"AUTH", "default", "x"}), kOk);
    EXPECT_EQ(client.ask({"AUTH", "other", "x"}), wrong);
    EXPECT_EQ(client.ask({"HELLO", "2", "AUTH", "other", "x"}), wrong);
    EXPECT_THAT(client.ask({"HELLO", "2", "AUTH", "default", "x"}), StartsWith("*14\r\n"));
}

TEST(RespServerTest, WhatAnErrorNamesIsThere) {
    const TestNode node;
    TestClient client(node);
    for (const std::string command : {"CLIENT", "COMMAND"}) {
        EXPECT_THAT(client.ask({command, "NOTHING"}), HasSubstr("Try " + command + " HELP."));
        EXPECT_THAT(client.ask({command, "HELP"}), AllOf(StartsWith("*"), HasSubstr(command)));
    }
}

TEST(RespServerTest, LookUpsAreCounted) {
    const TestNode node;
    TestClient client(node);
    play(client, {
                     {{"MSET", "a", "1", "b", "2"}, kOk},
                     {{"EXISTS", "a", "none"}, ":1\r\n"},
                     {{"KV.LONGEST", "a", "b", "none", "a"}, ":2\r\n"},
                     {{"GET", "a"}, bulk("1")},
                 });
    EXPECT_THAT(node.http("GET", "/metrics"),
                AllOf(HasSubstr("sluice_kvnode_lookups_total{result=\"found\"} 3\n"),
                      HasSubstr("sluice_kvnode_lookups_total{result=\"missing\"} 3\n"),
                      HasSubstr("sluice_kv_hits_total{tier=\"dram\"} 1\n")));
    EXPECT_THAT(client.ask({"INFO", "stats"}),
                AllOf(HasSubstr("keyspace_hits:4\r\n"), HasSubstr("keyspace_misses:3\r\n")));
}

TEST(RespServerTest, WebPagesOrderNothing) {
    const TestNode node;
    TestClient client(node);
    ASSERT_EQ(client.ask({"SET", "a", "1"}), kOk);
    for (const std::string field :
         {"Origin: http://page\r\n", "Origin: null\r\n", "Sec-Fetch-Site: cross-site\r\n"}) {
        EXPECT_THAT(node.http("POST", "/kv/drop", R"({"name":"a"})", field),
                    StartsWith("HTTP/1.1 403"));
    }
    EXPECT_EQ(client.ask({"EXISTS", "a"}), ":1\r\n");
    // The user's own typing, in the browser's address line.
    EXPECT_THAT(node.http("GET", "/kv/status", "", "Sec-Fetch-Site: none\r\n"),
                StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(node.http("POST", "/kv/drop", R"({"name":"a"})"), HasSubstr(R"("done":1)"));
}

TEST(RespServerTest, WhoSpeaksHttpIsCut) {
    const TestNode node;
    for (const std::string text :
         {"POST / HTTP/1.1\r\nflushall\r\n", "PUT / HTTP/1.1\r\nhost: a\r\nSET a 1\r\n"}) {
        TestClient client(node);
        client.socket().send(text + "ECHO more\r\n");
        EXPECT_THAT(client.socket().read_all(),
                    ::testing::EndsWith("-ERR this port speaks RESP, not HTTP\r\n"));
    }
    TestClient client(node);
    EXPECT_EQ(client.ask({"EXISTS", "a"}), ":0\r\n");
}

TEST(RespServerTest, SetTakesItsOptions) {
    const TestNode node;
    TestClient client(node);
    play(client,
         {
             {{"SET", "a", "1", "XX"}, kNull},
             {{"SET", "a", "1", "NX"}, kOk},
             {{"SET", "a", "2", "NX"}, kNull},
             {{"GET", "a"}, bulk("1")},
             {{"TTL", "a"}, ":-1\r\n"},
             {{"TTL", "none"}, ":-2\r\n"},
             {{"SET", "a", "3", "XX", "GET", "EX", "100"}, bulk("1")},
             {{"TTL", "a"}, ":100\r\n"},
             {{"SET", "a", "4", "KEEPTTL"}, kOk},
             {{"TTL", "a"}, ":100\r\n"},
             {{"SET", "a", "5"}, kOk},
             {{"TTL", "a"}, ":-1\r\n"},
             {{"EXPIRE", "a", "50"}, ":1\r\n"},
             {{"TTL", "a"}, ":50\r\n"},
             {{"PEXPIRE", "a", "-1"}, ":1\r\n"},
             {{"EXISTS", "a"}, ":0\r\n"},
             {{"EXPIRE", "a", "50"}, ":0\r\n"},
             {{"SET", "a", "1", "EX", "0"}, "-ERR invalid expire time in 'set' command\r\n"},
             {{"SET", "a", "1", "EX", "x"}, "-ERR value is not an integer or out of range\r\n"},
             {{"SET", "a", "1", "NX", "XX"}, "-ERR syntax error\r\n"},
             {{"SET", "a", "1", "PX"}, "-ERR syntax error\r\n"},
             {{"EXISTS", "a"}, ":0\r\n"},
             {{"SET", std::string(limits::kKvNameBytes + 1, 'n'), "1"}, "-ERR key is too long\r\n"},
         });
}

TEST(RespServerTest, ABlockStaysTheFirstAndOtherPayloadsAreViolations) {
    TestNode node;
    TestClient client(node);
    const ChainPtr chain = make_chain("text", 2);
    const std::string name = name_of(*chain, 0);
    const std::string first = value_of(*chain, 0, "payload");
    const std::string other = value_of(*chain, 0, "another");
    EXPECT_EQ(client.ask({"SET", name, first, "NX", "EX", "100"}), kOk);
    EXPECT_EQ(client.ask({"SET", name, first}), kOk);
    EXPECT_EQ(client.ask({"SET", name, first, "NX"}), kNull);
    EXPECT_THAT(client.ask({"SET", name, other}), StartsWith("-NUMERICS "));
    EXPECT_EQ(client.ask({"SET", name, other, "NX"}), kNull);
    EXPECT_EQ(client.ask({"GET", name}), bulk(first));
    EXPECT_EQ(node.call([](NodeService& service) { return service.store.dram().stats().differs; }),
              2U);
    // The next block's value, or none at all, isn't this one's.
    EXPECT_EQ(client.ask({"SET", name_of(*chain, 1), first}),
              "-ERR the value is another block than its name says\r\n");
    EXPECT_THAT(client.ask({"SET", name_of(*chain, 1), "no block"}),
                StartsWith("-ERR the value is no whole block: "));
    EXPECT_THAT(client.ask({"MSET", name_of(*chain, 1), "no block"}),
                StartsWith("-ERR the value is no whole block: "));
    EXPECT_EQ(client.ask({"EXISTS", name_of(*chain, 1)}), ":0\r\n");
    // A read is a use: it lives as long as its class says from now on.
    EXPECT_EQ(client.ask({"TTL", name}), ":604800\r\n");
}

TEST(RespServerTest, HalfCommandsWaitAndGarbageEndsTheConnection) {
    const TestNode node;
    TestClient client(node);
    const std::string text = encode({"SET", "a", std::string(40'000, 'v')});
    for (std::size_t at = 0; at < 64; ++at) client.socket().send(text.substr(at, 1));
    EXPECT_EQ(client.ask_raw(text.substr(64)), kOk);
    EXPECT_EQ(client.ask({"STRLEN", "a"}), ":40000\r\n");
    EXPECT_EQ(client.ask_raw("STRLEN a\r\n"), ":40000\r\n");

    for (const std::string garbage :
         {"*1\r\n!3\r\n", "*1\r\n$-7\r\n", "*99999999999\r\n", "*1\r\n$999999999999\r\n"}) {
        TestClient wrong(node);
        wrong.socket().send(encode({"PING"}) + garbage);
        EXPECT_THAT(wrong.socket().read_all(), StartsWith("+PONG\r\n-ERR Protocol error"))
            << garbage;
    }
    TestClient leaving(node);
    leaving.socket().send(encode({"PING"}) + encode({"QUIT"}) + encode({"PING"}));
    EXPECT_EQ(leaving.socket().read_all(), "+PONG\r\n+OK\r\n");
    EXPECT_EQ(client.ask({"PING"}), "+PONG\r\n");
}

TEST(RespServerTest, NothingIsToldWithoutThePassword) {
    const TestNode node({.password = "secret"});
    TestClient client(node);
    client.socket().send(encode({"GET", "a"}) + encode({"AUTH", "wrong"}) + encode({"HELLO", "3"}) +
                         encode({"AUTH", "default", "secret"}));
    EXPECT_EQ(client.socket().read_until("\r\n"), "-NOAUTH Authentication required.\r\n");
    EXPECT_THAT(client.socket().read_until("\r\n"), StartsWith("-WRONGPASS "));
    EXPECT_THAT(client.socket().read_until("\r\n"), StartsWith("-NOAUTH "));
    EXPECT_EQ(client.socket().read_until("\r\n"), kOk);
    EXPECT_EQ(client.ask({"SET", "a", std::string(100'000, 'v')}), kOk);
    TestClient greeting(node);
    EXPECT_THAT(greeting.ask({"HELLO", "3", "AUTH", "default", "secret"}), StartsWith("%7\r\n"));
    EXPECT_EQ(greeting.ask({"GET", "none"}), "_\r\n");
    // A stranger can't make it hold much.
    TestClient stranger(node);
    stranger.socket().send("*2\r\n$4\r\nAUTH\r\n$100000000\r\n");
    EXPECT_THAT(stranger.socket().read_all(), StartsWith("-ERR Protocol error"));
    EXPECT_THAT(node.http("POST", "/kv/drop", R"({"tenant":"acme"})"), StartsWith("HTTP/1.1 401"));
    EXPECT_THAT(
        node.http("POST", "/kv/drop", R"({"tenant":"acme"})", "Authorization: Bearer secret\r\n"),
        StartsWith("HTTP/1.1 200"));
}

std::string numbered(std::size_t i) {
    std::string value = "value " + std::to_string(i) + " ";
    while (value.size() < 64UL * 1024) value += value;
    return value;
}

// Memory for a third of what comes: the rest goes without one byte over the bound.
TEST(RespServerTest, ThreeTimesItsMemoryIsNeverOverIt) {
    TestNode node({.dram = 4UL * 1024 * 1024});
    TestClient client(node);
    for (std::size_t i = 0; i < 120; ++i) {
        ASSERT_EQ(client.ask({"SET", "n" + std::to_string(i), numbered(i)}), kOk);
        EXPECT_THAT(node.call([](NodeService& service) { return service.store.dram().bytes(); }),
                    Le(4UL * 1024 * 1024));
    }
    EXPECT_EQ(client.ask({"GET", "n119"}), bulk(numbered(119)));
    EXPECT_EQ(client.ask({"GET", "n0"}), kNull);
    EXPECT_THAT(client.ask({"SET", "huge", std::string(5UL * 1024 * 1024, 'x')}),
                StartsWith("-OOM "));
}

TEST(RespServerTest, ATenantKeepsToTheBoundThatItWasGiven) {
    TestNode node({.dram = 4UL * 1024 * 1024});
    TestClient client(node);
    EXPECT_THAT(node.http("POST", "/kv/bounds", R"({"tenants":{"greedy":0}})"),
                StartsWith("HTTP/1.1 400"));
    EXPECT_THAT(node.http("POST", "/kv/bounds", R"({"tenants":{"greedy":300000}})"),
                StartsWith("HTTP/1.1 200"));
    const auto set = [&](const ChainPtr& chain) {
        for (std::size_t i = 0; i < chain->keys.size(); ++i)
            EXPECT_EQ(client.ask({"SET", name_of(*chain, i),
                                  value_of(*chain, i, std::string(10'000, 'x'))}),
                      kOk);
    };
    set(make_chain("a", 20, kv::Retention::kChat, "modest"));
    for (int i = 0; i < 20; ++i)
        set(make_chain(std::to_string(i), 5, kv::Retention::kChat, "greedy"));
    const auto stats = node.call([](NodeService& service) { return service.store.dram().stats(); });
    ASSERT_EQ(stats.tenants.size(), 2U);
    EXPECT_LE(stats.tenants[0].bytes, 300'000U);
    EXPECT_GE(stats.tenants[0].entries, 20U);
    EXPECT_EQ(stats.tenants[1].entries, 20U);
}

// Answers from memory wait for earlier ones from the SSD, and a read that was on its way when its name
// was written doesn't bring the old value back.
TEST(RespServerTest, PipelinedAnswersComeInOrderFromBothTiers) {
    const kv::testing::Folder folder;
    TestNode node({.dram = 1UL * 1024 * 1024, .ssd_dir = folder.path()});
    TestClient client(node);
    constexpr std::size_t kCount = 60;
    for (std::size_t i = 0; i < kCount; ++i)
        ASSERT_EQ(client.ask({"SET", "n" + std::to_string(i), numbered(i)}), kOk);
    node.sync();
    std::string questions;
    std::string answers;
    for (std::size_t i = 0; i < kCount; ++i) {
        const std::string name = "n" + std::to_string(i);
        questions += encode({"GET", name}) + encode({"PING", name});
        answers += bulk(numbered(i)) + bulk(name);
    }
    questions += encode({"MGET", "n1", "none", "n59"});
    answers += "*3\r\n" + bulk(numbered(1)) + kNull + bulk(numbered(59));
    EXPECT_TRUE(client.ask_raw(questions) == answers);
    const auto ssd_hits = [&] {
        return node.call([](NodeService& service) { return service.store.ssd()->stats().hits; });
    };
    EXPECT_THAT(ssd_hits(), Gt(30U));
    EXPECT_EQ(client.ask_raw(encode({"GET", "n0"}) + encode({"SET", "n0", "new"}) +
                             encode({"GET", "n0"}) + encode({"DEL", "n1"}) + encode({"GET", "n1"})),
              bulk(numbered(0)) + kOk + bulk("new") + ":1\r\n" + kNull);
    EXPECT_EQ(client.ask({"GET", "n0"}), bulk("new"));
    EXPECT_EQ(client.ask({"SET", "n2", "x", "GET"}), bulk(numbered(2)));

    std::multiset<std::string> met;
    std::string cursor = "0";
    do {
        client.socket().send(encode({"SCAN", cursor, "COUNT", "7"}));
        EXPECT_EQ(client.socket().read_until("\r\n"), "*2\r\n");
        const auto text = [&] {
            client.socket().read_until("\r\n");
            std::string line = client.socket().read_until("\r\n");
            return line.substr(0, line.size() - 2);
        };
        cursor = text();
        const std::size_t count = std::stoul(client.socket().read_until("\r\n").substr(1));
        for (std::size_t i = 0; i < count; ++i) met.insert(text());
    } while (cursor != "0");
    EXPECT_EQ(met.size(), kCount - 1);
    for (std::size_t i = 2; i < kCount; ++i) EXPECT_EQ(met.count("n" + std::to_string(i)), 1U) << i;
}

TEST(RespServerTest, WhatTheSsdHasSurvivesTheNode) {
    const kv::testing::Folder folder;
    const ChainPtr chain = make_chain("text", 5);
    {
        TestNode node({.ssd_dir = folder.path()});
        TestClient client(node);
        for (std::size_t i = 0; i < 5; ++i)
            EXPECT_EQ(client.ask({"SET", name_of(*chain, i), value_of(*chain, i), "NX"}), kOk);
        EXPECT_EQ(client.ask({"SET", "plain", "text", "EX", "1000"}), kOk);
        node.sync();
    }
    TestNode node({.ssd_dir = folder.path()});
    TestClient client(node);
    EXPECT_EQ(client.ask({"DBSIZE"}), ":6\r\n");
    EXPECT_THAT(node.http("GET", "/kv_events"), HasSubstr(R"("tier":"ssd")"));
    EXPECT_EQ(client.ask({"KV.LONGEST", name_of(*chain, 0), name_of(*chain, 2), "none"}), ":2\r\n");
    EXPECT_EQ(client.ask({"GET", name_of(*chain, 1)}), bulk(value_of(*chain, 1)));
    // Compared although only the SSD has it.
    EXPECT_THAT(client.ask({"SET", name_of(*chain, 2), value_of(*chain, 2, "another")}),
                StartsWith("-NUMERICS "));
    EXPECT_EQ(client.ask({"SET", name_of(*chain, 0), value_of(*chain, 0), "NX"}), kNull);
    EXPECT_EQ(client.ask({"MSET", "new", "1", name_of(*chain, 3), value_of(*chain, 3)}), kOk);
    EXPECT_THAT(client.ask({"MSET", name_of(*chain, 4), value_of(*chain, 4, "another")}),
                StartsWith("-NUMERICS "));
    EXPECT_EQ(client.ask({"GET", name_of(*chain, 4)}), bulk(value_of(*chain, 4)));
    EXPECT_EQ(client.ask({"GETRANGE", "plain", "0", "1"}), bulk("te"));
    EXPECT_THAT(node.http("POST", "/kv/drop", R"({"tenant":"acme"})"), HasSubstr(R"("done":5)"));
    EXPECT_EQ(client.ask({"EXISTS", name_of(*chain, 0), name_of(*chain, 1), "plain"}), ":1\r\n");
}

// Who reads nothing holds up neither others nor more than a few megabytes, and gets all in the end.
TEST(RespServerTest, ASlowReaderWaitsAlone) {
    TestNode node;
    TestClient client(node);
    const std::string value(1UL * 1024 * 1024, 'v');
    ASSERT_EQ(client.ask({"SET", "big", value}), kOk);
    net::testing::RawSocket slow(node.port(), 65'536);
    constexpr std::size_t kReads = 40;
    for (std::size_t i = 0; i < kReads; ++i) slow.send(encode({"GET", "big"}));
    slow.send(encode({"PING"}));
    ASSERT_EQ(client.ask({"PING"}), "+PONG\r\n");
    const std::uint64_t read = node.call([](NodeService& service) { return service.bytes_read; });
    EXPECT_LT(read, kReads * value.size() / 2) << "all of it was made ready at once";
    for (std::size_t i = 0; i < kReads; ++i) {
        ASSERT_EQ(slow.read_until("\r\n"), "$1048576\r\n");
        ASSERT_EQ(slow.read_until("\r\n").size(), value.size() + 2);
    }
    EXPECT_EQ(slow.read_until("\r\n"), "+PONG\r\n");
}

TEST(RespServerTest, PlantedFaultsDoWhatTheySay) {
    const std::string value(10'000, 'v');
    {
        const TestNode node({.faults = {.node_flip = true}});
        TestClient client(node);
        EXPECT_EQ(client.ask({"SET", "a", value}), kOk);
        const std::string answer = client.ask({"GET", "a"});
        EXPECT_EQ(answer.size(), bulk(value).size());
        EXPECT_NE(answer, bulk(value));
    }
    {
        const TestNode node({.faults = {.node_other_key = true}});
        TestClient client(node);
        EXPECT_EQ(client.ask({"MSET", "a", "of a", "b", "of b"}), kOk);
        EXPECT_EQ(client.ask({"GET", "a"}), bulk("of b"));
    }
    {
        const TestNode node({.faults = {.node_cut = true}});
        TestClient client(node);
        EXPECT_EQ(client.ask({"SET", "a", value}), kOk);
        client.socket().send(encode({"GET", "a"}));
        const std::string answer = client.socket().read_all();
        EXPECT_EQ(answer, bulk(value).substr(0, bulk(value).size() / 2));
    }
    {
        const TestNode node({.faults = {.node_hang = true}});
        TestClient client(node);
        EXPECT_EQ(client.ask({"SET", "a", value}), kOk);
        client.socket().send(encode({"GET", "a"}) + encode({"PING"}));
        EXPECT_EQ(client.socket().read_until("vvv"), "$10000\r\nvvv");
        TestClient other(node);
        EXPECT_EQ(other.ask({"PING"}), "+PONG\r\n");
    }
}

TEST(NodeHttpTest, TellsWhatItHoldsAndTakesOrders) {
    TestNode node;
    TestClient client(node);
    const ChainPtr chain = make_chain("text", 2);
    EXPECT_EQ(client.ask({"SET", name_of(*chain, 0), value_of(*chain, 0)}), kOk);
    EXPECT_EQ(client.ask({"SET", name_of(*chain, 1), value_of(*chain, 1)}), kOk);
    EXPECT_THAT(node.http("GET", "/health"), StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(node.http("GET", "/metrics"),
                AllOf(HasSubstr("sluice_kv_bytes{tier=\"dram\"}"),
                      HasSubstr("sluice_kv_hits_total{tier=\"dram\"}"),
                      HasSubstr("sluice_numerics_violations_total 0")));
    EXPECT_THAT(node.http("GET", "/kv/status"),
                AllOf(HasSubstr(R"("tier":"dram")"), HasSubstr(R"("tenant":"acme")")));
    EXPECT_THAT(node.http("GET", "/kv_events"),
                AllOf(HasSubstr(R"("tier":"dram")"), HasSubstr(to_hex(chain->keys[1]))));
    EXPECT_THAT(node.http("POST", "/kv/pin",
                          R"({"names":[")" + name_of(*chain, 0) + R"(","none"],"seconds":60})"),
                AllOf(HasSubstr(R"("done":1)"), HasSubstr(R"("failed":1)")));
    EXPECT_THAT(node.http("POST", "/kv/verify", "{}"),
                AllOf(HasSubstr(R"("done":2)"), HasSubstr(R"("failed":0)")));
    EXPECT_THAT(node.http("POST", "/kv/drop", R"({"name":")" + name_of(*chain, 1) + R"("})"),
                HasSubstr(R"("done":1)"));
    EXPECT_EQ(client.ask({"EXISTS", name_of(*chain, 1)}), ":0\r\n");
    EXPECT_THAT(node.http("POST", "/kv/drop", "{}"), StartsWith("HTTP/1.1 400"));
    EXPECT_THAT(node.http("GET", "/kv/drop"), StartsWith("HTTP/1.1 405"));
    EXPECT_THAT(node.http("GET", "/none"), StartsWith("HTTP/1.1 404"));
}

TEST(NodeHttpTest, TellsWhoHasWhatOnItsSsdByClass) {
    const kv::testing::Folder folder;
    TestNode node({.ssd_dir = folder.path()});
    TestClient client(node);
    const auto set = [&](const ChainPtr& chain) {
        for (std::size_t i = 0; i < chain->keys.size(); ++i)
            EXPECT_EQ(client.ask({"SET", name_of(*chain, i), value_of(*chain, i)}), kOk);
    };
    set(make_chain("a", 3));
    set(make_chain("b", 2, kv::Retention::kAgent));
    set(make_chain("c", 1, kv::Retention::kChat, "other"));
    EXPECT_EQ(client.ask({"SET", "no block", "at all"}), kOk);
    const std::string answer = node.http("GET", "/kv/status");
    const auto status = port::parse_kv_status(answer.substr(answer.find("\r\n\r\n") + 4));
    ASSERT_TRUE(status.has_value()) << answer;
    const auto& held = status->tiers.at(1).holdings;
    ASSERT_EQ(held.size(), 3U);
    const auto is = [](const port::KvHolding& holding, const char* tenant, const char* retention,
                       std::uint64_t entries) {
        EXPECT_EQ(holding.tenant, tenant);
        EXPECT_EQ(holding.retention, retention);
        EXPECT_EQ(holding.entries, entries);
        EXPECT_GT(holding.bytes, 0U);
    };
    is(held[0], "acme", "agent", 2);
    is(held[1], "acme", "chat", 3);
    is(held[2], "other", "chat", 1);
}

}  // namespace
}  // namespace sluice::kvnode
