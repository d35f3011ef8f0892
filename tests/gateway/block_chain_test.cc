#include "gateway/block_chain.h"

#include <gtest/gtest.h>

#include <numeric>

namespace sluice::gateway {
namespace {

const kv::BlockKeyRoot kRoot{
    .fingerprint = "f", .numerics_id = "n", .component = "mla", .block_tokens = 4};

std::vector<TokenId> tokens(int count) {
    std::vector<TokenId> all(count);
    std::iota(all.begin(), all.end(), 100);
    return all;
}

std::vector<routing::BlockHash> plain(std::string salt, std::span<const TokenId> all) {
    kv::BlockKeyRoot root = kRoot;
    root.salt = std::move(salt);
    kv::BlockKey key = kv::root_key(root);
    std::vector<routing::BlockHash> hashes;
    for (std::size_t at = 0; at + 4 <= all.size(); at += 4) {
        key = kv::child_key(key, all.subspan(at, 4));
        hashes.push_back(block_hash(key));
    }
    return hashes;
}

TEST(BlockChainTest, ABlocksHashIsTheStartOfItsKey) {
    kv::BlockKey key{0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF, 0xFF};
    EXPECT_EQ(block_hash(key), 0x0123'4567'89AB'CDEFULL);
}

TEST(BlockChainTest, AnAnswerGoesOnWhereThePromptEnds) {
    const auto all = tokens(23);
    BlockChain chain({.shared = "t"});
    const std::span prompt = std::span(all).first(10);
    for (std::size_t answered = 0; answered <= 13; ++answered) {
        const auto hashes = chain.hashes(kRoot, prompt, std::span(all).subspan(10, answered));
        const auto expected = plain("t", std::span(all).first(10 + answered));
        EXPECT_EQ(std::vector(hashes.begin(), hashes.end()), expected);
    }
}

// Elsewhere the salt was left out, and one tenant found what another had asked.
TEST(BlockChainTest, AnotherSaltOrModelHasNoBlockInCommon) {
    const auto all = tokens(8);
    BlockChain mine({.shared = "mine"});
    BlockChain other({.shared = "other"});
    const auto own = mine.hashes(kRoot, all, {});
    const std::vector before(own.begin(), own.end());
    EXPECT_NE(before[0], other.hashes(kRoot, all, {})[0]);
    kv::BlockKeyRoot newer = kRoot;
    newer.fingerprint = "g";
    const auto changed = mine.hashes(newer, all, {});
    ASSERT_EQ(changed.size(), 2U);
    EXPECT_NE(changed[0], before[0]);
    const auto back = mine.hashes(kRoot, all, {});
    EXPECT_EQ(std::vector(back.begin(), back.end()), before);
}

TEST(BlockChainTest, AnEngineWithoutComponentsHasNoNamesForBlocks) {
    port::ServerInfo info{.model = "m", .fingerprint = "f", .numerics_id = "n"};
    EXPECT_FALSE(block_root(info).has_value());
    info.kv_components = {{.name = "mla", .layout = "rows", .dtype = "f32"}};
    const auto root = block_root(info);
    ASSERT_TRUE(root.has_value());
    EXPECT_EQ(root->component, "mla");
    EXPECT_EQ(root->layout, "rows");
    EXPECT_EQ(root->block_tokens, 64U);
}

}  // namespace
}  // namespace sluice::gateway
