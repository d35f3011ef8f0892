// What clients and time can't do to a cache node: make it wait or hold more than it may, or serve what is
// damaged.

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/process_stats.h"
#include "kv/block_name.h"
#include "tests/kvnode/support.h"
#include "tests/kvnode/test_node.h"

namespace sluice::kvnode {
namespace {

using namespace sluice::kvnode::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::size_t kMiB = 1024UL * 1024;
const std::string kNull = "$-1\r\n";
const std::string kOk = "+OK\r\n";

std::string name_of(const Chain& chain, std::size_t index) {
    return kv::to_wire(
        {.tenant = chain.tenant, .retention = chain.retention, .key = chain.keys[index]});
}

std::uint64_t resident_bytes() { return read_process_stats()->resident_bytes; }

template <class Wanted>
bool wait_until(Wanted wanted) {
    const Deadline end = soon();
    while (!wanted()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::yield();
    }
    return true;
}

TEST(NodeBoundsTest, WhoDoesNotReadIsCutAndMakesItHoldLittle) {
    TestNode node({.limits = {.write_stall = std::chrono::milliseconds(100)}});
    TestClient client(node);
    const std::string value(kMiB, 'v');
    ASSERT_EQ(client.ask({"SET", "big", value}), kOk);
    net::testing::RawSocket slow(node.port(), 65'536);
    constexpr std::size_t kReads = 200;
    std::string questions;
    for (std::size_t i = 0; i < kReads; ++i) questions += encode({"GET", "big"});
    ASSERT_TRUE(slow.send(questions));
    EXPECT_TRUE(wait_until(
        [&] { return node.call([](NodeService& service) { return service.clients_cut; }) == 1; }));
    const std::uint64_t read = node.call([](NodeService& service) { return service.bytes_read; });
    EXPECT_LT(read, kReads * value.size() / 8)
        << "it was made to prepare answers that nobody reads";
    EXPECT_LT(slow.read_all().size(), kReads * value.size() / 8);
    EXPECT_TRUE(slow.was_reset());
    EXPECT_EQ(node.call([](NodeService& service) { return service.clients.size(); }), 1U);
    EXPECT_EQ(client.ask({"PING"}), "+PONG\r\n");
}

// Values that are on the SSD alone would come to memory for every client that asks and doesn't read.
TEST(NodeBoundsTest, WhatComesFromTheSsdForThoseWhoDoNotReadIsBounded) {
    const kv::testing::Folder folder;
    TestNode node({.dram = kMiB, .ssd_dir = folder.path()});
    TestClient client(node);
    constexpr std::size_t kValues = 24;
    std::vector<std::string> ask_all{"MGET"};
    for (std::size_t i = 0; i < kValues; ++i) {
        ask_all.push_back("n" + std::to_string(i));
        ASSERT_EQ(client.ask({"SET", ask_all.back(), std::string(kMiB / 2, 'v')}), kOk);
    }
    node.sync();
    constexpr std::uint64_t kMost = 8 * kMiB;
    node.call([](NodeService& service) { service.ssd_answers = ReadBudget(kMost); });
    const auto used = [&] {
        return node.call([](NodeService& service) { return service.ssd_answers.used(); });
    };
    EXPECT_THAT(client.ask(ask_all), HasSubstr("-OOM what came from the SSD"));
    EXPECT_EQ(used(), 0U);

    // Fourteen values fit once, and stay where they are until the client reads.
    const std::vector<std::string> ask_some(ask_all.begin(), ask_all.begin() + 15);
    net::testing::RawSocket slow(node.port(), 4'096);
    ASSERT_TRUE(slow.send(encode(ask_some)));
    const auto asked = [&] {
        return node.call([](NodeService& service) { return service.bytes_read; });
    };
    ASSERT_TRUE(wait_until([&] { return asked() >= 14 * kMiB / 2; }));
    EXPECT_THAT(client.ask(ask_some), HasSubstr("-OOM what came from the SSD"));
    EXPECT_LE(used(), kMost);
    EXPECT_EQ(client.ask({"STRLEN", "n0"}), ":524288\r\n");
    EXPECT_EQ(slow.read_until("\r\n"), "*14\r\n");
    slow.close();
    EXPECT_TRUE(wait_until([&] { return used() == 0; })) << "it is not given back";
    EXPECT_EQ(client.ask({"GET", "n3"}), bulk(std::string(kMiB / 2, 'v')));
    EXPECT_EQ(client.ask(ask_some).substr(0, 5), "*14\r\n");
}

// Values from memory are shared with their readers, and stay for them when memory lets go of them.
TEST(NodeBoundsTest, WhatAllTogetherLeaveUnreadIsBoundedAndTheSlowestGoes) {
    TestNode node;
    TestClient client(node);
    ASSERT_EQ(client.ask({"SET", "big", std::string(kMiB, 'v')}), kOk);
    constexpr std::uint64_t kMost = 64 * kMiB;
    node.call([](NodeService& service) { service.unread_most = kMost; });
    const auto of_service = [&](auto member) {
        return node.call([member](NodeService& service) { return service.*member; });
    };
    const auto many = [](std::size_t values) {
        std::vector<std::string> words{"MGET"};
        words.resize(1 + values, "big");
        return encode(words);
    };
    // The kernel takes a few MiB of each.
    net::testing::RawSocket slowest(node.port(), 4'096);
    ASSERT_TRUE(slowest.send(many(60)));
    ASSERT_TRUE(wait_until([&] { return of_service(&NodeService::unread_bytes) > 40 * kMiB; }));
    EXPECT_EQ(of_service(&NodeService::clients_cut), 0U);
    net::testing::RawSocket slow(node.port(), 4'096);
    ASSERT_TRUE(slow.send(many(36)));
    EXPECT_TRUE(wait_until([&] { return of_service(&NodeService::clients_cut) == 1; }));
    EXPECT_LE(of_service(&NodeService::unread_bytes), kMost);
    EXPECT_LT(slowest.read_all().size(), 60 * kMiB);
    EXPECT_TRUE(slowest.was_reset());
    EXPECT_EQ(slow.read_until("\r\n"), "*36\r\n");
    slow.close();
    EXPECT_TRUE(wait_until([&] { return of_service(&NodeService::unread_bytes) == 0; }));
    EXPECT_EQ(client.ask({"PING"}), "+PONG\r\n");
}

TEST(NodeBoundsTest, OneAnswerHasNoMoreThanAClientMayLeaveUnread) {
    TestNode node;
    TestClient client(node);
    ASSERT_EQ(client.ask({"SET", "big", std::string(kMiB, 'v')}), kOk);
    std::vector<std::string> words{"MGET"};
    words.resize(1 + limits::kKvNodeOutputBytes / kMiB + 1, "big");
    EXPECT_THAT(client.ask(words), HasSubstr("-OOM these values together"));
    EXPECT_EQ(node.call([](NodeService& service) { return service.clients_cut; }), 0U);
}

TEST(NodeBoundsTest, WhatHasNotComeWholeIsBoundedForAllClientsTogether) {
    TestNode node({.dram = 160 * kMiB});
    TestClient first(node);
    const std::string head = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$";
    ASSERT_TRUE(first.socket().send(head + std::to_string(50 * kMiB) + "\r\n"));
    const auto held = [&] {
        return node.call([](NodeService& service) { return service.input_bytes; });
    };
    ASSERT_TRUE(wait_until([&] { return held() >= 50 * kMiB; }));
    TestClient second(node);
    ASSERT_TRUE(second.socket().send(head + std::to_string(40 * kMiB) + "\r\n"));
    EXPECT_THAT(second.socket().read_all(),
                AllOf(HasSubstr("-OOM requests that have not come whole"),
                      HasSubstr(std::to_string(80 * kMiB))));
    EXPECT_TRUE(wait_until([&] { return held() < 51 * kMiB; })) << "it is not given back";
    // Neither small requests nor whoever was there before suffer from it.
    TestClient third(node);
    EXPECT_EQ(third.ask({"SET", "b", std::string(30'000, 'v')}), kOk);
    EXPECT_EQ(first.ask_raw(std::string(50 * kMiB, 'v') + "\r\n"), kOk);
}

TEST(NodeBoundsTest, OneClientTooManyIsToldSoAndTheNextOneComesIn) {
    TestNode node({.limits = {.connections = 2}});
    TestClient first(node);
    EXPECT_EQ(first.ask({"PING"}), "+PONG\r\n");
    {
        TestClient second(node);
        EXPECT_EQ(second.ask({"PING"}), "+PONG\r\n");
        TestClient third(node);
        EXPECT_EQ(third.socket().read_all(), "-ERR max number of clients reached\r\n");
        EXPECT_EQ(second.ask({"PING"}), "+PONG\r\n");
    }
    ASSERT_TRUE(wait_until([&] {
        return node.call([](NodeService& service) { return service.clients.size(); }) == 1;
    }));
    TestClient fourth(node);
    EXPECT_EQ(fourth.ask({"PING"}), "+PONG\r\n");
}

/// Flips a bit of `text` wherever a file below `folder` has it; how often that was.
int damage(const std::filesystem::path& folder, std::string_view text) {
    int damaged = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (!entry.is_regular_file()) continue;
        std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
        const std::string all(std::istreambuf_iterator<char>(file), {});
        for (std::size_t at = all.find(text); at != std::string::npos;
             at = all.find(text, at + 1)) {
            file.clear();
            file.seekp(static_cast<std::streamoff>(at));
            file.put(static_cast<char>(text.front() ^ 1));
            ++damaged;
        }
    }
    return damaged;
}

TEST(NodeBoundsTest, VerifyFindsWhatTheDiskSpoiledAndItIsNeverServed) {
    const kv::testing::Folder folder;
    const ChainPtr chain = make_chain("text", 4);
    {
        TestNode node({.ssd_dir = folder.path()});
        TestClient client(node);
        for (std::size_t i = 0; i < 4; ++i) {
            const std::string value = value_of(*chain, i, "payload number " + std::to_string(i));
            ASSERT_EQ(client.ask({"SET", name_of(*chain, i), value}), kOk);
        }
        node.sync();
    }
    ASSERT_EQ(damage(folder.path(), "payload number 2"), 1);
    TestNode node({.ssd_dir = folder.path()});
    TestClient client(node);
    EXPECT_EQ(client.ask({"EXISTS", name_of(*chain, 2)}), ":1\r\n");
    EXPECT_THAT(node.http("POST", "/kv/verify", "{}"),
                AllOf(HasSubstr(R"("done":3,)"), HasSubstr(R"("failed":1)")));
    EXPECT_EQ(client.ask({"EXISTS", name_of(*chain, 2)}), ":0\r\n");
    EXPECT_EQ(client.ask({"GET", name_of(*chain, 2)}), kNull);
    EXPECT_THAT(node.http("GET", "/metrics"), HasSubstr("sluice_kv_corrupt_total 1\n"));
    EXPECT_THAT(node.http("POST", "/kv/verify", "{}"),
                AllOf(HasSubstr(R"("done":3,)"), HasSubstr(R"("failed":0)")));
    EXPECT_EQ(node.call([](NodeService& service) { return service.store.ssd()->stats().hits; }), 0U)
        << "a check is no use of a value";
    EXPECT_EQ(client.ask({"GET", name_of(*chain, 3)}),
              bulk(value_of(*chain, 3, "payload number 3")));
}

TEST(NodeBoundsTest, VerifyFindsWhatCameDamaged) {
    TestNode node;
    TestClient client(node);
    const ChainPtr chain = make_chain("text", 2);
    std::string damaged = value_of(*chain, 0);
    damaged[damaged.size() - 20] ^=
        1;  // In the payload: whoever stores it looks at the header alone.
    ASSERT_EQ(client.ask({"SET", name_of(*chain, 0), damaged}), kOk);
    ASSERT_EQ(client.ask({"SET", name_of(*chain, 1), value_of(*chain, 1)}), kOk);
    EXPECT_THAT(node.http("POST", "/kv/verify", "{}"),
                AllOf(HasSubstr(R"("done":1,)"), HasSubstr(R"("failed":1)")));
    EXPECT_EQ(client.ask({"GET", name_of(*chain, 0)}), kNull);
    EXPECT_EQ(client.ask({"GET", name_of(*chain, 1)}), bulk(value_of(*chain, 1)));
}

// The node's loop doesn't go through its megabytes, wherever it lies.
TEST(NodeBoundsTest, ABlockThatCameDamagedIsItsReadersToFind) {
    const kv::testing::Folder folder;
    TestNode node({.dram = kMiB, .ssd_dir = folder.path()});
    TestClient client(node);
    const ChainPtr chain = make_chain("text", 1);
    std::string damaged = value_of(*chain, 0);
    damaged[damaged.size() - 20] ^= 1;  // In the payload.
    ASSERT_EQ(client.ask({"SET", name_of(*chain, 0), damaged}), kOk);
    EXPECT_EQ(client.ask({"GET", name_of(*chain, 0)}), bulk(damaged));
    for (int i = 0; i < 4; ++i)
        ASSERT_EQ(client.ask({"SET", "n" + std::to_string(i), std::string(kMiB / 2, 'v')}), kOk);
    node.sync();
    ASSERT_TRUE(node.call([&](NodeService& service) {
        return service.store.only_on_ssd(name_of(*chain, 0), wall_now());
    }));
    EXPECT_EQ(client.ask({"GET", name_of(*chain, 0)}), bulk(damaged));
}

/// So many values go through both tiers; make soak asks for more.
std::size_t churn_puts() {
    const char* const asked = std::getenv("SLUICE_NODE_PUTS");
    return asked == nullptr ? 200'000 : std::strtoull(asked, nullptr, 10);
}

TEST(NodeBoundsTest, MemoryIsFlatWhileValuesGoThroughBothTiers) {
    const kv::testing::Folder folder;
    TestNode node({.dram = 8 * kMiB, .ssd_dir = folder.path()});
    const std::size_t puts = churn_puts();
    constexpr std::size_t kAtOnce = 500;
    std::uint64_t early = 0;
    for (std::size_t at = 0; at < puts; at += kAtOnce) {
        node.call([at](NodeService& service) {
            for (std::size_t i = at; i < at + kAtOnce; ++i) {
                const std::string name = "n" + std::to_string(i);
                EXPECT_EQ(
                    service.store.put(name, kv::SharedBytes::own(name + std::string(900, 'v')), {},
                                      wall_now()),
                    NodeStore::Stored::kStored);
            }
        });
        // Else many would be dropped for want of room in the writer's queue.
        if (at % 10'000 == 0) node.sync();
        if (early == 0 && at >= puts / 4) early = resident_bytes();
    }
    node.sync();
    EXPECT_LT(resident_bytes(), early + early / 10 + 8 * kMiB);
    node.call([](NodeService& service) {
        EXPECT_LE(service.store.dram().bytes(), 8 * kMiB);
        EXPECT_LE(service.store.ssd()->stats().bytes, 64 * kMiB);
        EXPECT_GT(service.store.ssd()->stats().reclaims, 1U);
    });
    TestClient client(node);
    const std::string last = "n" + std::to_string(puts - 1);
    EXPECT_EQ(client.ask({"GETRANGE", last, "0", std::to_string(last.size() - 1)}), bulk(last));
}

}  // namespace
}  // namespace sluice::kvnode
