#include "gateway/kv_history.h"

#include <gtest/gtest.h>

namespace sluice::gateway {
namespace {

KvHistory::Entry entry(std::string rid, std::size_t blocks) {
    return {.rid = rid,
            .request_id = rid + "-client",
            .tenant = "t",
            .keys = std::vector<kv::BlockKey>(blocks)};
}

TEST(KvHistoryTest, ARequestIsFoundByEitherOfItsNames) {
    KvHistory history;
    history.remember(entry("a", 2));
    ASSERT_NE(history.find("a"), nullptr);
    EXPECT_EQ(history.find("a-client"), history.find("a"));
    EXPECT_EQ(history.find("b"), nullptr);
}

TEST(KvHistoryTest, OfANameThatCameTwiceTheLastIsMeant) {
    KvHistory history;
    history.remember(entry("a", 2));
    history.remember(
        {.rid = "b", .request_id = "a-client", .tenant = "t", .keys = {kv::BlockKey{}}});
    EXPECT_EQ(history.find("a-client")->rid, "b");
}

TEST(KvHistoryTest, TheOldestGoWhenThereAreTooManyBlocks) {
    KvHistory history(10);
    for (const char* rid : {"a", "b", "c"}) history.remember(entry(rid, 4));
    EXPECT_EQ(history.find("a"), nullptr);
    EXPECT_NE(history.find("c"), nullptr);
    EXPECT_EQ(history.blocks(), 8U);
    history.remember(entry("huge", 11));
    EXPECT_EQ(history.find("huge"), nullptr);
    EXPECT_EQ(history.blocks(), 8U);
    for (int i = 0; i < 1'000; ++i) history.remember(entry(std::to_string(i), 3));
    EXPECT_LE(history.blocks(), 10U);
}

}  // namespace
}  // namespace sluice::gateway
